/* expect:
FILE:8:42: j0f, which not all targets compute, is not accepted in a codelet: of math.h there are acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround nearbyint nextafter pow remainder rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc
    for (int i = 0; i < n; i++) x[i] = 1 + j0f(x[i]);
                                           ^^^^^^^^^
*/
#include <math.h>
void f(int n, float *x) {
  for (int i = 0; i < n; i++) x[i] = 1 + j0f(x[i]);
}
