/* expect:
FILE:9:26: rfactor 2 is illegal: loop i reduces z by max and also uses it in another way
          #pragma looptune rfactor 2
                           ^^^^^^^^^
*/
void f(int n, int m, double y[n], double z[20])
{
    for (int j = 0; j < m; j++) {
        #pragma looptune rfactor 2
        for (int i = j; i < n; i++)
            if (i < 2 && z[j + 8] > 2)
                z[9] = y[i] > z[9] ? y[i] : z[9];
    }
}
