/* expect:
FILE:6:9: this scop is not inside a function: write one around it, with the arrays and sizes it uses
  #pragma scop
          ^^^^
*/
#pragma scop
for (int i = 0; i < 9; i++) a[i] = i;
