/* A contraction of two tensors of four dimensions. */
#define A 48
#define B 48
#define C 48
#define D 48
#define E 24
#define F 24
#pragma hmpp tccg codelet, target=CUDA
void tccg(const float x[A][E][B][F], const float y[D][F][C][E], float z[A][B][C][D])
{
    for (int a = 0; a < A; a++)
        for (int b = 0; b < B; b++)
            for (int c = 0; c < C; c++)
                for (int d = 0; d < D; d++) {
                    z[a][b][c][d] = 0;
                    for (int e = 0; e < E; e++)
                        for (int f = 0; f < F; f++)
                            z[a][b][c][d] += x[a][e][b][f] * y[d][f][c][e];
                }
}
