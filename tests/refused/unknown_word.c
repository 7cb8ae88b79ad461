/* expect:
FILE:7:18: unknown directive 'simd'; there are prefix, expand, snapshot, argreduce, schedule, distribute, cut, splitat, block, skew, shift, reverse, permute, wavefront, fold, fuse, box, tile, unroll, fullunroll, parallel, noparallel, rfactor, tensor, factor, gridify, grid, swizzle, pack, maxregs, launchbounds, vectorize, stage, overlap, resident, persistent, concurrent, nnan
    #pragma hmppcg simd 4
                   ^^^^^^
*/
void f(int n, double A[n], double B[n]) {
  #pragma hmppcg simd 4
  for (int i = 0; i < n; i++) B[i] = A[i];
}
