/* expect:
no loop in FILE
*/
/* nothing */
