/* expect:
FILE:7:18: unknown directive 'simd'; there are distribute, cut, permute, fold, fuse, box, tile, unroll, fullunroll, parallel, noparallel, split, factor, gridify, grid, raster, pack, maxregs, launchbounds, vectorize, stage, overlap, persistent, nonan
    #pragma hmppcg simd 4
                   ^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg simd 4
  for (int i = 0; i < n; i++) B[i] = A[i];
}
