package traces

// pending are the histories that are known to fail and have to be mended, with who does. It is no place for what is
// meant to differ (exceptions_test.go), and it has to become empty: one that passes says so.
var pending = map[string]string{}
