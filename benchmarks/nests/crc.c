/* Checksums of many messages, bit by bit. */
#define M 65536
#define L 256
#pragma hmpp crc codelet, target=CUDA
void crc(const unsigned char msg[M][L], unsigned int out[M])
{
    for (int i = 0; i < M; i++) {
        unsigned int c = 0xffffffffu;
        for (int j = 0; j < L; j++) {
            c ^= msg[i][j];
            for (int k = 0; k < 8; k++) c = (c >> 1) ^ (0xedb88320u & (0u - (c & 1u)));
        }
        out[i] = ~c;
    }
}
