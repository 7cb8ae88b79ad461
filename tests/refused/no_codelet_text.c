/* expect:
no loop in FILE
*/


