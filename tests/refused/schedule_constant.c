/* expect:
FILE:7:18: schedule: its bounds have the constant 18446744073709551615, which does not fit in int64
    #pragma hmppcg schedule
                   ^^^^^^^^
*/
void f(unsigned long n, double v[24]) {
  #pragma hmppcg schedule
  for (unsigned i = (n + 4) / -1; i < 2; i++) v[i] += 1;
}
