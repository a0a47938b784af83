package execution

import (
	"strings"

	"github.com/drover-project/drover"
)

// keySeparator parts the namespace from the id in the key of an environment. Neither has it, and URLs need not escape it.
const keySeparator = "~"

// Key names an environment among those of all namespaces: by its id in the namespace "default", which "" stands for too, and as
// "namespace~id" elsewhere. Ids of runners begin with it.
func Key(namespace, id string) string {
	if namespace == "" || namespace == drover.DefaultNamespace {
		return id
	}
	return namespace + keySeparator + id
}

// IsKey reports whether it is the key of an environment of another namespace than the default, and not an id.
func IsKey(s string) bool { return strings.Contains(s, keySeparator) }

// SplitKey takes a key, or a runner's id, apart. The namespace is "" for default.
func SplitKey(key string) (namespace, id string) {
	if before, after, ok := strings.Cut(key, keySeparator); ok {
		return before, after
	}
	return "", key
}

// NamespaceOf is the namespace of a key or of a runner's id, "default" by its name.
func NamespaceOf(key string) string {
	if namespace, _ := SplitKey(key); namespace != "" {
		return namespace
	}
	return drover.DefaultNamespace
}

// Key is that of the environment.
func (e *Environment) Key() string { return Key(e.Namespace, e.ID) }

// Key is that of the runner's environment.
func (r *Runner) Key() string { return Key(r.Namespace, r.Environment) }
