/* expect:
FILE:7:18: unknown directive 'vectorise'; there are distribute, cut, permute, fold, fuse, box, tile, unroll, fullunroll, parallel, noparallel, split, factor, gridify, grid, maxregs, stage, overlap, nonan
    #pragma hmppcg vectorise 4
                   ^^^^^^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg vectorise 4
  for (int i = 0; i < n; i++) B[i] = A[i];
}
