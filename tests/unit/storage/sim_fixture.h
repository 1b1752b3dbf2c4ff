/* sim_fixture.h: cmocka's setup and teardown of a store on a simulated disk. */
#ifndef SLUICE_TESTS_UNIT_STORAGE_SIM_FIXTURE_H
#define SLUICE_TESTS_UNIT_STORAGE_SIM_FIXTURE_H
#include "sim/fs_sim.h"
#include "tests/unit/storage/store_fixture.h"

static inline int fixture_setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    fixture_init(f, fs_sim_new(), "/data", 1);
    fixture_open(f);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    if (f->store != NULL)
        fixture_close(f);
    fs_sim_free(f->fs);
    free(f);
    return 0;
}
#endif
