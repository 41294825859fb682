/* SPDX-License-Identifier: Apache-2.0 */
int indented_by_four(void)
{
    return 0;
}
