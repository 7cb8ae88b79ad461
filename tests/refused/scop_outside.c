/* expect:
FILE:6:9: this scop stands in no function: write one around it, with the arrays and sizes it uses
  #pragma scop
          ^^^^
*/
#pragma scop
for (int i = 0; i < 9; i++) a[i] = i;
#pragma endscop
