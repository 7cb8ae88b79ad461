/* expect:
FILE:6:25: k__ahead: names that end in __ahead are those of looptune's kernels: write another one
  void f(int n, const int k__ahead, double A[n])
                          ^^^^^^^^
*/
void f(int n, const int k__ahead, double A[n])
{
  for (int i = 0; i < n; i++) A[i] = k__ahead;
}
