/* expect:
FILE:6:25: k__ahead: names that end in __ahead are reserved for generated kernels: choose another name
  void f(int n, const int k__ahead, double A[n])
                          ^^^^^^^^
*/
void f(int n, const int k__ahead, double A[n])
{
  for (int i = 0; i < n; i++) A[i] = k__ahead;
}
