/* Importance files: what is written is read again; damage is found and named; merging; profiling; the facts. */
#include "tests/selection_fixture.h"

#include <unistd.h>

#include "traces/importance_bytes.h"
#include "traces/importance_facts.h"
#include "traces/importance_file.h"
#include "traces/importance_profile.h"
#include "traces/text.h"

static char folder[] = "/tmp/smg-test-XXXXXX";
static char path_a[64], path_b[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(path_a, sizeof(path_a), "%s/a.kvit", folder);
    snprintf(path_b, sizeof(path_b), "%s/b.kvit", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    remove(path_a);
    remove(path_b);
    return rmdir(folder);
}

/* A small profile of the default model. */
static void profile(const char *dataset, struct smg_importance **im, struct smg_importance_info *info)
{
    struct smg_profile_plan plan = {.requests = 1, .steps = 2};
    struct smg_world w = WORLD(dataset, "scheme=partial", "blocks_per_layer=101");
    struct smg_diag diag = {""};

    assert_int_equal(smg_profile_make(&w, &plan, im, info, &diag), SMG_OK);
    smg_world_free(&w);
}

static void write_profile(const char *path, const char *dataset)
{
    struct smg_importance_info info;
    struct smg_importance *im;
    struct smg_diag diag = {""};

    profile(dataset, &im, &info);
    assert_int_equal(smg_importance_write(path, im, &info, &diag), SMG_OK);
    smg_importance_destroy(im);
}

static void test_round_trip(void **state)
{
    struct smg_importance_info info, again;
    struct smg_importance *im, *found;
    struct smg_diag diag = {""};
    size_t n;

    (void)state;
    profile("workload.dataset=lcc", &im, &info);
    assert_int_equal(smg_importance_write(path_a, im, &info, &diag), SMG_OK);
    assert_int_equal(smg_importance_read(path_a, &found, &again, &diag), SMG_OK);
    n = (size_t)im->groups * im->layers * im->blocks;
    assert_int_equal(found->groups, 5);
    assert_int_equal(found->layers, 40);
    assert_int_equal(found->blocks, 101);
    assert_memory_equal(found->group_lo, im->group_lo, 5 * sizeof(uint32_t));
    assert_memory_equal(found->group_hi, im->group_hi, 5 * sizeof(uint32_t));
    assert_memory_equal(found->requests, im->requests, 5 * sizeof(uint32_t));
    assert_memory_equal(found->value, im->value, n * sizeof(float));
    assert_memory_equal(found->variance, im->variance, n * sizeof(float));
    assert_memory_equal(found->dataset_value, im->dataset_value, n * sizeof(float));
    assert_int_equal(found->overlap_steps, 2);
    assert_memory_equal(found->newrate, im->newrate, 80 * sizeof(float));
    assert_memory_equal(&info, &again, sizeof(info));
    assert_true(found->synthetic);
    assert_within(found->newrate[10 * 2], 1, 1e-6);
    assert_within(found->newrate[10 * 2 + 1] + found->overlap[10 * 2 + 1], 1, 1e-6);
    smg_importance_destroy(found);
    smg_importance_destroy(im);
}

/* ---- Damage ---- */

static void spoil(size_t at, const void *bytes, size_t n, int mend)
{
    struct smg_diag diag;
    unsigned char sum[8];
    uint64_t hash;
    char *data;
    size_t size, i;
    FILE *f;

    assert_int_equal(smg_file_read(path_a, SIZE_MAX / 2, &data, &size, &diag), SMG_OK);
    memcpy(data + at, bytes, n);
    hash = smg_fnv1a64(SMG_FNV1A64_START, data, size - 8);
    for (i = 0; i < 8; i++) {
        sum[i] = (unsigned char)(hash >> 8 * i);
    }
    if (mend) {
        memcpy(data + size - 8, sum, 8);
    }
    f = fopen(path_b, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    free(data);
}

static void assert_refused(const char *message)
{
    struct smg_importance *im = NULL;
    struct smg_diag diag = {""};

    assert_int_equal(smg_importance_read(path_b, &im, NULL, &diag), SMG_ERR_PARSE);
    if (strstr(diag.text, message) == NULL) {
        fail_msg("'%s' does not say '%s'", diag.text, message);
    }
    assert_non_null(strstr(diag.text, path_b));
    assert_null(im);
}

static uint32_t header_bytes(void)
{
    unsigned char head[12];
    FILE *f = fopen(path_a, "rb");

    assert_non_null(f);
    assert_int_equal(fread(head, 1, 12, f), 12);
    fclose(f);
    return head[8] | (uint32_t)head[9] << 8;
}

static void test_damage(void **state)
{
    const float nan = NAN, two = 2, half = 0.5f;
    uint32_t group = 12 + header_bytes(), value = group + 16, overlap = group + 5 * (16 + 3 * 40 * 101 * 4 + 8) + 8;

    (void)state;
    spoil(0, "KVIX", 4, 1);
    assert_refused("offset 0: field 'magic': expected \"KVIT\"");
    spoil(4, "\x02", 1, 1);
    assert_refused("offset 8: field 'version': found 2, expected 1");
    spoil(value + 3, "\x11", 1, 0);
    assert_refused("field 'checksum': found ");
    spoil(12, "[", 1, 1);
    assert_refused("field 'header': expected a JSON object");
    spoil(value, &half, 4, 1);
    assert_refused("field 'importance': layer 0, block 0: found 0.5, expected +inf");
    spoil(value + 2 * 101 * 4 + 12, &nan, 4, 1);
    assert_refused("layer 2, block 3: found nan, expected 0 to 1");
    spoil(value + 39 * 101 * 4, &two, 4, 1);
    assert_refused("layer 39, block 0: found 2, expected 0 to 1");
    spoil(group + 4, "\0\0\0\0", 4, 1);
    assert_refused("field 'n_hi': group 0: (0, 0] is empty");
    spoil(value + 2 * 40 * 101 * 4, "\x09", 1, 1);
    assert_refused("field 'dataset_count': group 0: found 9, the header names 1");
    spoil(value + 40 * 101 * 4, &nan, 4, 1);
    assert_refused("field 'variance': value 0: found nan, expected 0 to 1");
    spoil(overlap, &nan, 4, 1);
    assert_refused("field 'overlap': value 0: found nan, expected 0 to 1");
    spoil(overlap + 80 * 4, &two, 4, 1);
    assert_refused("field 'newrate': value 0: found 2, expected 0 to 1");
}

/* A header may say anything; it must not make the reader ask for memory that the file cannot fill, or a user divide by nothing.
 */
static void test_header(void **state)
{
    char *data, *at;
    struct smg_diag diag;
    size_t size;

    (void)state;
    assert_int_equal(smg_file_read(path_a, SIZE_MAX / 2, &data, &size, &diag), SMG_OK);
    at = strstr(data + 12, "\"groups\":5,");
    assert_non_null(at);
    spoil((size_t)(at - data), "\"groups\":9,", 11, 1);
    assert_refused("field 'header': 9 x 40 x 101 values (groups, layers, blocks) do not fit the file");
    at = strstr(data + 12, "\"cap\":");
    assert_non_null(at);
    spoil((size_t)(at - data) + 6, "7", 1, 1);
    assert_refused("field 'header': key 'cap': expected a share in (0, 1]");
    spoil((size_t)(at - data) + 2, "x", 1, 1);
    assert_refused("field 'header': key 'cap': expected a share in (0, 1]");
    free(data);
}

/* A file that is cut anywhere is refused, never read beyond its end. */
static void test_cut(void **state)
{
    struct smg_importance *im;
    struct smg_diag diag;
    char *data;
    size_t size, cut;
    FILE *f;

    (void)state;
    assert_int_equal(smg_file_read(path_a, SIZE_MAX / 2, &data, &size, &diag), SMG_OK);
    for (cut = 0; cut < size; cut += cut < 40 ? 1 : size / 17) {
        f = fopen(path_b, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, cut, f), cut);
        assert_int_equal(fclose(f), 0);
        assert_int_not_equal(smg_importance_read(path_b, &im, NULL, &diag), SMG_OK);
    }
    free(data);
}

/* ---- Use ---- */

static void test_world(void **state)
{
    char set[128];
    const char *good[] = {set, NULL}, *other[] = {set, "model=llama-3.1-8b", NULL};
    struct smg_world w;
    struct smg_diag d;

    (void)state;
    snprintf(set, sizeof(set), "proactive.importance=%s", path_a);
    assert_int_equal(fixture_load(&w, &d, good), SMG_OK);
    assert_int_equal(w.importance->groups, 5);
    assert_int_equal(w.importance->blocks, 101); /* ranked with 1000: resampled */
    assert_true(w.synthetic_importance);
    assert_int_equal(smg_importance_group(w.importance, 4096), 0);
    assert_int_equal(smg_importance_group(w.importance, 4097), 1);
    assert_int_equal(smg_importance_group(w.importance, 99999), 4);
    smg_world_free(&w);
    assert_int_equal(fixture_load(&w, &d, other), SMG_ERR_INVALID);
    assert_non_null(strstr(d.text, "made for qwen3-14b with 40 layers and 8 KV heads, llama-3.1-8b has 32 and 8"));
}

/* A captured profile (here: one that says so) tells the layer source what is selected. */
static void test_captured(void **state)
{
    struct smg_importance_info info;
    struct smg_importance *im;
    struct smg_diag diag = {""};
    struct source s;
    char set[128];

    (void)state;
    assert_int_equal(smg_importance_read(path_a, &im, &info, &diag), SMG_OK);
    im->synthetic = 0;
    assert_int_equal(smg_importance_write(path_b, im, &info, &diag), SMG_OK);
    smg_importance_destroy(im);
    snprintf(set, sizeof(set), "proactive.importance=%s", path_b);
    SOURCE(&s, 0, set, "on_demand.reuse=true");
    assert_int_equal(s.world.synthetic_importance, 0);
    assert_int_equal(s.world.synthetic_selection, 0);
    assert_int_equal(fixture_split(&s, 1, 8).remote, 8 * 1400);
    assert_true(fixture_split(&s, 2, 8).remote < 8 * 1400 / 2);
    fixture_write(&s, 8, 0, 1000);
    assert_int_equal(fixture_split(&s, 1, 8).remote, 0);
    fixture_source_free(&s);
}

static void test_merge(void **state)
{
    struct smg_importance_info info[3];
    struct smg_importance *im[3];
    struct smg_diag diag = {""};
    size_t at = (size_t)(40 + 20) * 101 + 7; /* group 1, layer 20 */

    (void)state;
    write_profile(path_b, "workload.dataset=samsum");
    assert_int_equal(smg_importance_read(path_a, &im[0], &info[0], &diag), SMG_OK);
    assert_int_equal(smg_importance_read(path_b, &im[1], &info[1], &diag), SMG_OK);
    im[1]->requests[1] = 3;
    assert_int_equal(smg_importance_merge(im[0], &info[0], im[1], &info[1], &im[2], &info[2], &diag), SMG_OK);
    assert_within(im[2]->value[at], (im[0]->value[at] + 3 * im[1]->value[at]) / 4, 1e-6);
    assert_true(isinf(im[2]->value[0]));
    assert_int_equal(im[2]->datasets, 2);
    assert_string_equal(info[2].dataset[0], "lcc");
    assert_string_equal(info[2].dataset[1], "samsum");
    assert_int_equal(smg_importance_write(path_b, im[2], &info[2], &diag), SMG_OK);
    smg_importance_destroy(im[2]);
    im[1]->steps[2] = UINT32_MAX;
    assert_int_equal(smg_importance_merge(im[0], &info[0], im[1], &info[1], &im[2], &info[2], &diag), SMG_ERR_RANGE);
    assert_string_equal(diag.text, "cannot merge: group 2: more than 4294967295 requests or steps");
    im[1]->group_hi[0]++;
    assert_int_equal(smg_importance_merge(im[0], &info[0], im[1], &info[1], &im[2], &info[2], &diag), SMG_ERR_INVALID);
    assert_string_equal(diag.text, "cannot merge: group 0 is (0, 4096] in one and (0, 4097] in the other");
    smg_importance_destroy(im[1]);
    smg_importance_destroy(im[0]);
}

/* Facts of a profile large enough to show them. What must hold of the file alone; the generator's are in docs/selection.md. */
static void test_facts(void **state)
{
    struct smg_profile_plan plan = {.requests = 2, .steps = 3};
    struct smg_world w = WORLD("scheme=partial", "blocks_per_layer=200", "model=gemma-3-12b");
    struct smg_importance_info info;
    struct smg_importance *im;
    struct smg_fact fact[SMG_FACTS];
    struct smg_diag diag = {""};

    (void)state;
    assert_int_equal(smg_profile_make(&w, &plan, &im, &info, &diag), SMG_OK);
    assert_int_equal(smg_importance_facts(im, &info, &w.model, NULL, fact), SMG_OK);
    assert_string_equal(fact[0].id, "T1");
    assert_int_equal(fact[4].verdict, SMG_FACT_PASS);    /* T5 */
    assert_int_equal(fact[5].verdict, SMG_FACT_UNKNOWN); /* T6 */
    assert_string_equal(fact[5].measured, "not measurable from this file");
    assert_int_equal(fact[8].verdict, SMG_FACT_PASS); /* T9: Gemma's layers slide */
    smg_importance_destroy(im);
    smg_world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage), cmocka_unit_test(test_header),
        cmocka_unit_test(test_cut),        cmocka_unit_test(test_world),  cmocka_unit_test(test_captured),
        cmocka_unit_test(test_merge),      cmocka_unit_test(test_facts),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
