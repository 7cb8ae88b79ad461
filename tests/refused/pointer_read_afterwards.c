/* expect:
FILE:9:3: the pointer cur is set here and read afterwards: write the array and an index instead
    cur = buf;
    ^^^^^^^^^
*/
float buf[100], *cur;
float last(void) { return cur[-1]; }
void f(void) {
  cur = buf;
  for (int i = 0; i < 100; i++) *cur++ = 1;
}
