#include "base/rng.h"
#include "base/varint.h"
#include "buffer/insert.h"
#include "buffer/spool_record.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/buffer/shapes.h"

enum { SPOOL = 77, RECORDS = 6 };

struct bytes {
    struct strbuf file;
    size_t piece_max; /* a read gives at most so many */
};

static bool read_bytes(void *context, uint64_t offset, void *out, size_t bytes, size_t *got, struct err *err)
{
    const struct bytes *from = context;
    (void)err;
    struct str rest = str_from(strbuf_view(&from->file), (size_t)offset);
    *got = MIN(MIN(bytes, rest.len), from->piece_max);
    memcpy(out, rest.data, *got);
    return true;
}

static struct spool_reader reader_of(struct bytes *bytes)
{
    return (struct spool_reader){
        .read = read_bytes, .context = bytes, .size = bytes->file.len, .spool = SPOOL, .at = SPOOL_FILE_HEAD_BYTES
    };
}

/* Payloads of 0, 1, 4, 9, ... bytes. */
static void write_sample(struct bytes *bytes)
{
    char payload[RECORDS * RECORDS];
    memset(payload, 'x', sizeof payload);
    bytes->piece_max = SIZE_MAX;
    spool_file_head_add(&bytes->file, &(struct spool_file_head){ SPOOL, 5, 7 });
    for (size_t i = 0; i < RECORDS; i++) {
        struct spool_record record = {
            .kind = SPOOL_INSERT, .commit = (uint32_t)i, .sequence = 5 + i, .payload = str_make(payload, i * i)
        };
        spool_record_add(&bytes->file, SPOOL, &record);
        assert_int_equal(bytes->file.len % 8, 0);
    }
}

/* Bits: records of the sample that are found whole; counts the ranges that are bad. */
static unsigned find_all(struct bytes *bytes, unsigned *bad)
{
    struct spool_reader reader = reader_of(bytes);
    struct spool_record record;
    struct err err;
    unsigned found = 0;
    enum spool_found result;
    uint64_t at = SPOOL_FILE_HEAD_BYTES;
    *bad = 0;
    while ((result = spool_reader_next(&reader, &record, &err)) != SPOOL_NO_MORE) {
        assert_int_equal(record.offset, at);
        at += record.bytes;
        if (result == SPOOL_BAD) {
            (*bad)++;
            continue;
        }
        assert_int_equal(result, SPOOL_FOUND);
        size_t i = (size_t)record.sequence - 5;
        assert_true(i < RECORDS && record.payload.len == i * i && record.commit == i);
        found |= 1u << i;
    }
    assert_int_equal(at, bytes->file.len);
    spool_reader_fini(&reader);
    return found;
}

static void records_read_back_in_pieces_of_any_size(void **state)
{
    struct bytes bytes = { 0 };
    unsigned bad;
    struct spool_file_head head;
    (void)state;
    write_sample(&bytes);
    assert_true(spool_file_head_parse(strbuf_view(&bytes.file), &head) && head.spool == SPOOL &&
                head.first_sequence == 5 && head.unpromised == 7);
    for (bytes.piece_max = 1; bytes.piece_max < 60; bytes.piece_max++) {
        assert_int_equal(find_all(&bytes, &bad), (1u << RECORDS) - 1);
        assert_int_equal(bad, 0);
    }
    strbuf_fini(&bytes.file);
}

static void any_flipped_bit_is_noticed_and_costs_one_record_P_11(void **state)
{
    struct bytes bytes = { 0 };
    unsigned bad;
    struct spool_file_head head;
    (void)state;
    write_sample(&bytes);
    for (size_t bit = 0; bit < bytes.file.len * 8; bit++) {
        bytes.file.data[bit / 8] = (char)(bytes.file.data[bit / 8] ^ 1 << bit % 8);
        unsigned found = find_all(&bytes, &bad), missing = ~found & ((1u << RECORDS) - 1);
        if (bit / 8 < SPOOL_FILE_HEAD_BYTES) {
            assert_int_equal(missing, 0);
            assert_false(spool_file_head_parse(strbuf_view(&bytes.file), &head));
        } else {
            assert_int_equal(bad, 1);
            assert_int_equal(__builtin_popcount(missing), 1);
        }
        bytes.file.data[bit / 8] = (char)(bytes.file.data[bit / 8] ^ 1 << bit % 8);
    }
    strbuf_fini(&bytes.file);
}

static void a_torn_end_hides_nothing_before_it_P_16(void **state)
{
    struct bytes bytes = { 0 };
    unsigned bad, whole = 0;
    (void)state;
    write_sample(&bytes);
    struct strbuf all = bytes.file;
    uint64_t end = SPOOL_FILE_HEAD_BYTES;
    for (size_t len = SPOOL_FILE_HEAD_BYTES; len <= all.len; len++) {
        if (len == end + spool_record_bytes((size_t)(whole * whole))) {
            end = len;
            whole++;
        }
        bytes.file.len = len;
        assert_int_equal(find_all(&bytes, &bad), (1u << whole) - 1);
        assert_int_equal(bad, len > end);
    }
    bytes.file = all;
    strbuf_fini(&bytes.file);
}

static void a_record_of_another_spool_is_none(void **state)
{
    struct bytes bytes = { .piece_max = SIZE_MAX };
    unsigned bad;
    (void)state;
    spool_file_head_add(&bytes.file, &(struct spool_file_head){ SPOOL + 1, 5, 0 });
    struct spool_record record = { .kind = SPOOL_INSERT, .sequence = 5, .payload = STR("") };
    spool_record_add(&bytes.file, SPOOL + 1, &record);
    assert_int_equal(find_all(&bytes, &bad), 0);
    assert_int_equal(bad, 1);
    strbuf_fini(&bytes.file);
}

static void an_insert_reads_back_whole(void **state)
{
    struct shape_spec spec = plain_spec("t", "u");
    struct strbuf payload = { 0 };
    struct spool_insert back;
    (void)state;
    spec.spooled = true;
    struct shape *shape = make_shape(&spec);
    struct insert *insert = make_insert(shape, "1\n2\n");
    insert->token = mem_strdup("token");
    insert->token_given = true;
    memcpy(insert->query_id, "query", 6);
    memcpy(insert->peer, "peer", 5);
    spool_insert_print(&payload, insert);
    strbuf_add(&payload, str_make(insert->body, insert->body_bytes));
    assert_true(spool_insert_parse(strbuf_view(&payload), &back));
    assert_true(str_is(back.query_id, "query") && str_is(back.peer, "peer") && str_is(back.token, "token"));
    assert_true(back.token_given && back.arrival_wall_ns == WALL_NS && str_eq(back.shape, shape->key));
    assert_true(str_is(back.body, "1\n2\n"));
    for (size_t len = 0; len < payload.len - insert->body_bytes; len++)
        assert_false(spool_insert_parse(str_make(payload.data, len), &back));
    insert_free(insert);
    shape_unref(shape);
    strbuf_fini(&payload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_read_back_in_pieces_of_any_size),
        cmocka_unit_test(any_flipped_bit_is_noticed_and_costs_one_record_P_11),
        cmocka_unit_test(a_torn_end_hides_nothing_before_it_P_16),
        cmocka_unit_test(a_record_of_another_spool_is_none),
        cmocka_unit_test(an_insert_reads_back_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
