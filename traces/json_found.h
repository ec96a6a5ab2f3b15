/* What a JSON file holds where something else was expected, in few words. */
#ifndef SMG_TRACES_JSON_FOUND_H
#define SMG_TRACES_JSON_FOUND_H

#include <jansson.h>

#define SMG_FOUND_MAX 56

/* "'4.5'", "'\"text\"'" (quotes tell text from numbers), "an object", "a list of 3"; "nothing" for NULL. Long texts are cut.
 * Returns out. */
const char *smg_json_found(const json_t *value, char out[SMG_FOUND_MAX]);

#endif
