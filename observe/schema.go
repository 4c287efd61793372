package observe

import _ "embed"

//go:embed record.schema.json
var recordJSONSchema string

// RecordJSONSchema returns the JSON Schema (draft 2020-12) of a [Record]'s JSON form,
// which is also the file record.schema.json of this package.
func RecordJSONSchema() string { return recordJSONSchema }
