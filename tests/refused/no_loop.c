/* expect:
no loop in FILE
*/
int main(void) { return 0; }
