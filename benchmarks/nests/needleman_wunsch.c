/* The table of Needleman and Wunsch, as Rodinia has it. */
#define N 4096
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#pragma hmpp nw codelet, target=CUDA
void nw(int ref[N + 1][N + 1], int t[N + 1][N + 1], int penalty)
{
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++)
            t[i][j] = MAX(MAX(t[i - 1][j - 1] + ref[i][j], t[i][j - 1] - penalty), t[i - 1][j] - penalty);
}
