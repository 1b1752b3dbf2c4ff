/* cmocka_all.h: what cmocka wants included before itself, in its order. */
#ifndef SLUICE_TESTS_SUPPORT_CMOCKA_ALL_H
#define SLUICE_TESTS_SUPPORT_CMOCKA_ALL_H
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#endif
