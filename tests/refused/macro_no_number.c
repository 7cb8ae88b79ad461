/* expect:
FILE:8:23: SIZE is defined as large, which is neither a number nor a variable
    for (int i = 0; i < SIZE; i++) x[i] = 1;
                        ^^^^
*/
#define SIZE large
void f(double *x) {
  for (int i = 0; i < SIZE; i++) x[i] = 1;
}
