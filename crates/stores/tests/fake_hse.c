/*
 * A fake libhse: the functions of hse.h that the store uses, implemented on a sorted array in memory.
 *
 * HSE is not packaged, so machines that run the tests do not have it. The behaviour on which the store relies is
 * imitated as it was observed with HSE 3.0.0: errno values, parameters that are refused by name, values that are
 * truncated to the buffer, one KVDB at a time. A KVDB is stored in the file `fake.journal` of its home directory, and
 * sync and close flush this file; a home directory is recognized by `kvdb.meta`.
 *
 * Calls are recorded, one per line, in a file with the name of this library plus `.calls`; queries of parameters and
 * reads of cursors are not recorded. A put of the key "!space" and every later put fail with ENOSPC, as on a full
 * device. With -DHSE_2, the library behaves like HSE 2, whose global parameters have different names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef uint64_t hse_err_t;

#define KEY_LEN_MAX 1344
#define VALUE_LEN_MAX (1024 * 1024)
#define NAME_LEN_MAX 32
#define KVS_MAX 16
/* An error is not a plain errno: HSE packs its source line into the same number. */
#define FAIL(number) (UINT64_C(0xfa4e00000000) | (uint64_t)(number))

struct record {
    uint32_t key_len, value_len;
    char *key, *value;
};

struct hse_kvs {
    char name[NAME_LEN_MAX];
    struct record *records;
    size_t count, room;
    bool open, compress;
    char prefix[16];
};

struct hse_kvdb {
    char home[4096];
    struct hse_kvs kvs[KVS_MAX];
    size_t count;
    char interval[16], durable[8], mode[16];
    FILE *journal;
    bool full;
};

struct hse_kvs_cursor {
    struct hse_kvs *kvs;
    /* Copies, because in HSE, the data that a cursor has read stays valid whatever is written in the meantime. */
    char key[KEY_LEN_MAX], *value;
    size_t key_len;
    bool inclusive;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;
static struct hse_kvdb *kvdb;

static void
called(const char *format, ...)
{
    char path[4200], line[4200];
    Dl_info info;
    va_list arguments;
    FILE *file;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (!dladdr((void *)&called, &info))
        return;
    snprintf(path, sizeof path, "%s.calls", info.dli_fname);
    file = fopen(path, "a");
    if (file) {
        fprintf(file, "%s\n", line);
        fclose(file);
    }
}

static void
called_with(const char *what, size_t count, const char *const *values)
{
    char line[4096];
    size_t used = (size_t)snprintf(line, sizeof line, "%s", what);

    for (size_t i = 0; i < count && used < sizeof line; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, " %s", values[i]);
    called("%s", line);
}

/* Copies the value of the parameter `name` if `values` contains this parameter. */
static void
take(char *out, size_t size, const char *name, size_t count, const char *const *values)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < count; i++)
        if (!strncmp(values[i], name, len) && values[i][len] == '=')
            snprintf(out, size, "%s", values[i] + len + 1);
}

/* HSE refuses the whole call if there is even one name that it does not know. */
static hse_err_t
refuse(const char *const *known, size_t count, const char *const *values)
{
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(values[i], '=');
        bool found = false;

        if (!equals || !equals[1])
            return FAIL(EINVAL);
        for (size_t j = 0; known[j]; j++)
            found |= strlen(known[j]) == (size_t)(equals - values[i]) && !strncmp(known[j], values[i], strlen(known[j]));
        if (!found)
            return FAIL(EINVAL);
    }
    return 0;
}

static const char *const GLOBAL[] = { "logging.enabled", "logging.destination", "logging.level",
#ifdef HSE_2
                                      "socket.enabled", "socket.path",
#else
                                      "rest.enabled", "rest.socket_path",
#endif
                                      NULL };
static const char *const KVDB_CREATE[] = { "storage.capacity.path", "storage.staging.path", "storage.pmem.path", NULL };
static const char *const KVDB_OPEN[] = { "mode", "durability.enabled", "durability.interval_ms", "durability.mclass",
                                         "throttling.init_policy", "csched_max_vgroups", NULL };
static const char *const KVS_CREATE[] = { "prefix.length", NULL };
static const char *const KVS_OPEN[] = { "transactions.enabled", "mclass.policy", "value.compression.default",
                                        "cn_cursor_vra", NULL };

int
hse_err_to_errno(hse_err_t error)
{
    return (int)(error & 0xffff);
}

size_t
hse_strerror(hse_err_t error, char *buffer, size_t size)
{
    return (size_t)snprintf(buffer, size, "fake.c:1: %s (%d)", strerror(hse_err_to_errno(error)),
                            hse_err_to_errno(error));
}

hse_err_t
hse_init(const char *config, size_t count, const char *const *values)
{
    called_with(config ? "init with a file" : "init", count, values);
    if (refuse(GLOBAL, count, values))
        return FAIL(EINVAL);
    initialised = true;
    return 0;
}

void
hse_fini(void)
{
    called("fini");
    initialised = false;
}

/* The position of a key, or of the first key that follows it. */
static size_t
position(const struct hse_kvs *kvs, const void *key, size_t len, bool *exact)
{
    size_t low = 0, high = kvs->count;

    *exact = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct record *record = &kvs->records[middle];
        int order = memcmp(record->key, key, len < record->key_len ? len : record->key_len);

        if (order == 0)
            order = record->key_len < len ? -1 : record->key_len > len;
        if (order == 0) {
            *exact = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
insert(struct hse_kvs *kvs, const void *key, size_t key_len, const void *value, size_t value_len)
{
    bool exact;
    size_t at = position(kvs, key, key_len, &exact);

    if (!exact) {
        if (kvs->count == kvs->room) {
            kvs->room = kvs->room ? 2 * kvs->room : 64;
            kvs->records = realloc(kvs->records, kvs->room * sizeof *kvs->records);
        }
        memmove(&kvs->records[at + 1], &kvs->records[at], (kvs->count - at) * sizeof *kvs->records);
        kvs->count++;
        kvs->records[at] = (struct record){ .key_len = (uint32_t)key_len, .key = malloc(key_len) };
        memcpy(kvs->records[at].key, key, key_len);
    }
    kvs->records[at].value = realloc(kvs->records[at].value, value_len + 1);
    kvs->records[at].value_len = (uint32_t)value_len;
    if (value_len)
        memcpy(kvs->records[at].value, value, value_len);
}

static void
delete(struct hse_kvs *kvs, const void *key, size_t key_len)
{
    bool exact;
    size_t at = position(kvs, key, key_len, &exact);

    if (!exact)
        return;
    free(kvs->records[at].key);
    free(kvs->records[at].value);
    memmove(&kvs->records[at], &kvs->records[at + 1], (--kvs->count - at) * sizeof *kvs->records);
}

/* Records a change: the KVS, the type ('c'reate, 'p'ut, 'd'elete), and two byte strings with their lengths. */
static void
note(struct hse_kvs *kvs, char kind, const void *key, size_t key_len, const void *value, size_t value_len)
{
    uint32_t head[4] = { (uint32_t)(kvs - kvdb->kvs), (uint32_t)kind, (uint32_t)key_len, (uint32_t)value_len };

    fwrite(head, sizeof head, 1, kvdb->journal);
    fwrite(key, 1, key_len, kvdb->journal);
    if (value_len)
        fwrite(value, 1, value_len, kvdb->journal);
}

/* Applies the complete changes in the journal and returns their length: a killed process may leave a partial change. */
static long
replay(FILE *journal)
{
    static char key[KEY_LEN_MAX], value[VALUE_LEN_MAX];
    uint32_t head[4];
    long whole = 0;

    while (fread(head, sizeof head, 1, journal) == 1) {
        struct hse_kvs *kvs = &kvdb->kvs[head[0]];

        if (fread(key, 1, head[2], journal) != head[2] || fread(value, 1, head[3], journal) != head[3])
            break;
        whole = ftell(journal);
        if (head[1] == 'p') {
            insert(kvs, key, head[2], value, head[3]);
        } else if (head[1] == 'd') {
            delete(kvs, key, head[2]);
        } else {
            memcpy(kvs->name, key, head[2]);
            memcpy(kvs->prefix, value, head[3]);
            kvdb->count = head[0] + 1;
        }
    }
    return whole;
}

static bool
has_meta(const char *home)
{
    char path[4200];
    struct stat status;

    snprintf(path, sizeof path, "%s/kvdb.meta", home);
    return stat(path, &status) == 0;
}

hse_err_t
hse_kvdb_create(const char *home, size_t count, const char *const *values)
{
    char path[4200];
    struct stat status;
    FILE *file;

    called_with("kvdb_create", count, values);
    if (!initialised || refuse(KVDB_CREATE, count, values))
        return FAIL(EINVAL);
    if (stat(home, &status))
        return FAIL(errno);
    if (has_meta(home))
        return FAIL(EEXIST);
    snprintf(path, sizeof path, "%s/kvdb.meta", home);
    file = fopen(path, "w");
    if (!file)
        return FAIL(errno);
    fputs("{}", file);
    return fclose(file) ? FAIL(errno) : 0;
}

hse_err_t
hse_kvdb_open(const char *home, size_t count, const char *const *values, struct hse_kvdb **out)
{
    char path[4200];
    FILE *journal;

    called_with("kvdb_open", count, values);
    if (!initialised || refuse(KVDB_OPEN, count, values))
        return FAIL(EINVAL);
    if (!has_meta(home))
        return FAIL(ENOENT);
    if (kvdb)
        return FAIL(EBUSY);
    kvdb = calloc(1, sizeof *kvdb);
    snprintf(kvdb->home, sizeof kvdb->home, "%s", home);
    snprintf(kvdb->interval, sizeof kvdb->interval, "100");
    snprintf(kvdb->durable, sizeof kvdb->durable, "true");
    snprintf(kvdb->mode, sizeof kvdb->mode, "rdwr");
    take(kvdb->interval, sizeof kvdb->interval, "durability.interval_ms", count, values);
    take(kvdb->durable, sizeof kvdb->durable, "durability.enabled", count, values);
    take(kvdb->mode, sizeof kvdb->mode, "mode", count, values);
    snprintf(path, sizeof path, "%s/fake.journal", home);
    journal = fopen(path, "r");
    if (journal) {
        long whole = replay(journal);

        fclose(journal);
        if (truncate(path, whole))
            return FAIL(errno);
    }
    kvdb->journal = fopen(path, "a");
    *out = kvdb;
    return kvdb->journal ? 0 : FAIL(errno);
}

hse_err_t
hse_kvdb_close(struct hse_kvdb *handle)
{
    int failed;

    called("kvdb_close");
    for (size_t i = 0; i < handle->count; i++)
        if (handle->kvs[i].open)
            abort(); /* HSE requires that a KVDB's KVSs are closed first. */
    failed = fclose(handle->journal);
    for (size_t i = 0; i < handle->count; i++) {
        for (size_t j = 0; j < handle->kvs[i].count; j++) {
            free(handle->kvs[i].records[j].key);
            free(handle->kvs[i].records[j].value);
        }
        free(handle->kvs[i].records);
    }
    free(handle);
    kvdb = NULL;
    return failed ? FAIL(errno) : 0;
}

static bool
writable(void)
{
    return !strcmp(kvdb->mode, "rdwr");
}

hse_err_t
hse_kvdb_sync(struct hse_kvdb *handle, unsigned flags)
{
    hse_err_t saved;

    called("kvdb_sync %u", flags);
    if (handle->full)
        abort(); /* HSE 3.0.0 may wait forever after its journal has failed. */
    pthread_mutex_lock(&lock);
    saved = !writable() ? FAIL(EROFS) : fflush(handle->journal) ? FAIL(errno) : 0;
    pthread_mutex_unlock(&lock);
    return saved;
}

hse_err_t
hse_kvdb_kvs_create(struct hse_kvdb *handle, const char *name, size_t count, const char *const *values)
{
    struct hse_kvs *kvs;

    called_with("kvs_create", count, values);
    if (refuse(KVS_CREATE, count, values) || !strcmp(name, "default"))
        return FAIL(EINVAL);
    if (strlen(name) >= NAME_LEN_MAX)
        return FAIL(ENAMETOOLONG);
    for (size_t i = 0; i < handle->count; i++)
        if (!strcmp(handle->kvs[i].name, name))
            return FAIL(EEXIST);
    kvs = &handle->kvs[handle->count++];
    snprintf(kvs->name, sizeof kvs->name, "%s", name);
    snprintf(kvs->prefix, sizeof kvs->prefix, "0");
    take(kvs->prefix, sizeof kvs->prefix, "prefix.length", count, values);
    note(kvs, 'c', name, strlen(name) + 1, kvs->prefix, sizeof kvs->prefix);
    return 0;
}

hse_err_t
hse_kvdb_kvs_open(
    struct hse_kvdb *handle, const char *name, size_t count, const char *const *values, struct hse_kvs **out)
{
    char compress[8] = "off";

    called_with("kvs_open", count, values);
    if (refuse(KVS_OPEN, count, values))
        return FAIL(EINVAL);
    take(compress, sizeof compress, "value.compression.default", count, values);
    for (size_t i = 0; i < handle->count; i++) {
        if (strcmp(handle->kvs[i].name, name))
            continue;
        if (handle->kvs[i].open)
            return FAIL(EBUSY);
        handle->kvs[i].open = true;
        handle->kvs[i].compress = !strcmp(compress, "on");
        *out = &handle->kvs[i];
        return 0;
    }
    return FAIL(ENOENT);
}

hse_err_t
hse_kvdb_kvs_close(struct hse_kvs *kvs)
{
    called("kvs_close");
    kvs->open = false;
    return 0;
}

static hse_err_t
fits(size_t key_len, size_t value_len)
{
    if (key_len > KEY_LEN_MAX)
        return FAIL(ENAMETOOLONG);
    if (key_len == 0)
        return FAIL(ENOENT);
    return value_len > VALUE_LEN_MAX ? FAIL(EMSGSIZE) : 0;
}

hse_err_t
hse_kvs_put(
    struct hse_kvs *kvs, unsigned flags, void *txn, const void *key, size_t key_len, const void *value, size_t value_len)
{
    hse_err_t error = fits(key_len, value_len);

    called("kvs_put");
    if (flags || txn)
        return FAIL(EINVAL);
    if (error)
        return error;
    if (!writable())
        return FAIL(EROFS);
    if (key_len == 6 && !memcmp(key, "!space", 6))
        kvdb->full = true;
    if (kvdb->full)
        return FAIL(ENOSPC);
    pthread_mutex_lock(&lock);
    insert(kvs, key, key_len, value, value_len);
    note(kvs, 'p', key, key_len, value, value_len);
    pthread_mutex_unlock(&lock);
    return 0;
}

hse_err_t
hse_kvs_get(
    struct hse_kvs *kvs,
    unsigned flags,
    void *txn,
    const void *key,
    size_t key_len,
    bool *found,
    void *buffer,
    size_t size,
    size_t *value_len)
{
    hse_err_t error = fits(key_len, 0);
    size_t at;

    called("kvs_get");
    if (flags || txn)
        return FAIL(EINVAL);
    if (error)
        return error;
    pthread_mutex_lock(&lock);
    at = position(kvs, key, key_len, found);
    if (*found) {
        const struct record *record = &kvs->records[at];
        size_t copied = record->value_len < size ? record->value_len : size;

        memcpy(buffer, record->value, copied);
        /* For a compressed value in memory, HSE 3.0.0 reports the length of the copied part, not of the whole value. */
        *value_len = kvs->compress ? copied : record->value_len;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

hse_err_t
hse_kvs_delete(struct hse_kvs *kvs, unsigned flags, void *txn, const void *key, size_t key_len)
{
    hse_err_t error = fits(key_len, 0);

    called("kvs_delete");
    if (flags || txn)
        return FAIL(EINVAL);
    if (error)
        return error;
    if (!writable())
        return FAIL(EROFS);
    pthread_mutex_lock(&lock);
    delete(kvs, key, key_len);
    note(kvs, 'd', key, key_len, NULL, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}

hse_err_t
hse_kvs_cursor_create(
    struct hse_kvs *kvs, unsigned flags, void *txn, const void *filter, size_t filter_len, struct hse_kvs_cursor **out)
{
    called("kvs_cursor_create");
    if (flags || txn || filter || filter_len)
        return FAIL(EINVAL);
    *out = calloc(1, sizeof **out);
    (*out)->kvs = kvs;
    (*out)->inclusive = true;
    return 0;
}

hse_err_t
hse_kvs_cursor_seek(
    struct hse_kvs_cursor *cursor, unsigned flags, const void *key, size_t len, const void **found, size_t *found_len)
{
    called("kvs_cursor_seek");
    if (flags || found || found_len)
        return FAIL(EINVAL);
    if (len > KEY_LEN_MAX)
        abort(); /* HSE 3.0.0 copies the whole key to a buffer of this size. */
    memcpy(cursor->key, key, len);
    cursor->key_len = len;
    cursor->inclusive = true;
    return 0;
}

hse_err_t
hse_kvs_cursor_read(
    struct hse_kvs_cursor *cursor,
    unsigned flags,
    const void **key,
    size_t *key_len,
    const void **value,
    size_t *value_len,
    bool *eof)
{
    bool exact;
    size_t at;

    if (flags)
        return FAIL(EINVAL);
    pthread_mutex_lock(&lock);
    at = position(cursor->kvs, cursor->key, cursor->key_len, &exact);
    if (exact && !cursor->inclusive)
        at++;
    *eof = at == cursor->kvs->count;
    if (!*eof) {
        const struct record *record = &cursor->kvs->records[at];

        memcpy(cursor->key, record->key, record->key_len);
        cursor->key_len = record->key_len;
        cursor->inclusive = false;
        cursor->value = realloc(cursor->value, record->value_len + 1);
        memcpy(cursor->value, record->value, record->value_len);
        *key = cursor->key;
        *key_len = cursor->key_len;
        *value = record->value_len ? cursor->value : NULL;
        *value_len = record->value_len;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

hse_err_t
hse_kvs_cursor_destroy(struct hse_kvs_cursor *cursor)
{
    called("kvs_cursor_destroy");
    free(cursor->value);
    free(cursor);
    return 0;
}

static hse_err_t
answer(char *buffer, size_t size, size_t *needed, const char *format, const char *value)
{
    *needed = (size_t)snprintf(buffer, size, format, value);
    return 0;
}

hse_err_t
hse_kvdb_param_get(struct hse_kvdb *handle, const char *name, char *buffer, size_t size, size_t *needed)
{
    if (!strcmp(name, "durability.interval_ms"))
        return answer(buffer, size, needed, "%s", handle->interval);
    if (!strcmp(name, "durability.enabled"))
        return answer(buffer, size, needed, "%s", handle->durable);
    if (!strcmp(name, "throttling.init_policy"))
        return answer(buffer, size, needed, "\"%s\"", "medium");
    return FAIL(ENOENT);
}

hse_err_t
hse_kvs_param_get(struct hse_kvs *kvs, const char *name, char *buffer, size_t size, size_t *needed)
{
    if (!strcmp(name, "prefix.length"))
        return answer(buffer, size, needed, "%s", kvs->prefix);
#ifdef HSE_2
    if (!strcmp(name, "compression.value.algorithm"))
        return answer(buffer, size, needed, "\"%s\"", "none");
#else
    if (!strcmp(name, "value.compression.default"))
        return answer(buffer, size, needed, "\"%s\"", kvs->compress ? "on" : "off");
#endif
    return FAIL(ENOENT);
}

#ifndef HSE_2
hse_err_t
hse_kvdb_attach(const char *target, const char *source, const char *const *paths)
{
    (void)target, (void)source, (void)paths;
    return FAIL(ENOTSUP);
}
#endif
