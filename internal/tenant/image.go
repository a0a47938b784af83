package tenant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/lazyregexp"
	"github.com/drover-project/drover/internal/signature"
	"github.com/drover-project/drover/tenancy"
)

const (
	hostImage = "host"      // the sandbox's name for the machine's own files
	hub       = "docker.io" // the registry of names that have none
	maxKeys   = 16          // of those that may sign a namespace's images
)

// reference is what both docker's daemon and our own store of images read in the same way: registry, path, tag and digest. A first
// part is a registry if it has a dot or a port, or is localhost. What else one of the two would take, such as ".." in a path, is none.
var reference = lazyregexp.New(`^(?:(localhost|` + registryHost + `)/)?(` + imagePath +
	`)(?::[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)

const (
	hostLabel    = `[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?`
	registryHost = hostLabel + `(?:(?:\.` + hostLabel + `)+(?::[0-9]+)?|:[0-9]+)`
	imageLabel   = `[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*`
	imagePath    = imageLabel + `(?:/` + imageLabel + `)*`
)

var (
	// source is an entry of a namespace's registries: a registry, or a path in it.
	source = lazyregexp.New(`^(?:localhost|` + registryHost + `)(?:/` + imagePath + `)?$`)
	// imageID is what docker's daemon may take for the id of an image that it has.
	imageID = lazyregexp.New(`^(?:sha256:)?[0-9a-f]+$`)
)

// refusedImages says which tasks of a canonical job have images that the namespace does not allow.
func refusedImages(ns *tenancy.Namespace, j *drover.Job) (errs []error) {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			if why := refusedImage(ns.Images, t); why != "" {
				errs = append(errs, fmt.Errorf("job.group[%s].task[%s].config.%s (namespace %q)", g.Name, t.Name, why, ns.Name))
			}
		}
	}
	return errs
}

// refusedImage says why the namespace does not allow the task's image, "" if it does. What counts is what the node runs, so nothing
// that only the node knows may stand in the image's name, nor in the names of keys.
func refusedImage(rule *tenancy.NamespaceImages, t *drover.Task) string {
	if rule == nil || len(rule.Registries) == 0 && rule.Pin == "" && len(rule.SignedBy) == 0 {
		return ""
	}
	if key := replacedKey(t.Config); key != "" {
		return fmt.Sprintf("%q: keys cannot be interpolated where images are restricted", key)
	}
	if load, ok := t.Config["load"]; ok && load != nil && load != "" {
		return "load: an image of the task's own files has no registry, no digest and no signature: push it to a registry"
	}
	image, given := t.Config["image"]
	ref, text := image.(string)
	switch {
	case given && image != nil && !text:
		return "image: must be a string"
	case ref == "" && t.Driver != "sandbox":
		return ""
	case ref == "" || ref == hostImage: // the sandbox's default
		if len(rule.Registries) == 0 || slices.Contains(rule.Registries, hostImage) {
			return ""
		}
		return fmt.Sprintf("image: %q is not among the registries %q", hostImage, rule.Registries)
	case strings.Contains(ref, "${"):
		return fmt.Sprintf("image: %q cannot be interpolated where images are restricted: write the image itself", ref)
	}
	return refusedReference(rule, ref)
}

// refusedReference is refusedImage of an image that a registry has.
func refusedReference(rule *tenancy.NamespaceImages, ref string) string {
	part := reference().FindStringSubmatch(ref)
	if part == nil || imageID().MatchString(ref) {
		return fmt.Sprintf("image: %q is no reference with a registry such as docker.io/library/python:3", ref)
	}
	if rule.Pin == tenancy.PinRequire && part[3] == "" {
		return fmt.Sprintf("image: %q has no digest: add @sha256:… of the image that is meant", ref)
	}
	full := located(part[1], part[2])
	if len(rule.Registries) > 0 && !slices.ContainsFunc(rule.Registries, func(allowed string) bool {
		host, path, _ := strings.Cut(allowed, "/")
		return allowed != hostImage && strings.HasPrefix(full+"/", strings.TrimSuffix(registry(host)+"/"+path, "/")+"/")
	}) {
		return fmt.Sprintf("image: %q comes from %s, which is not among the registries %q", ref, full, rule.Registries)
	}
	if rule.Pin == tenancy.PinResolve && part[3] == "" {
		return fmt.Sprintf("image: %q has no digest: it was registered before the namespace pinned images, register the job again", ref)
	}
	return ""
}

// Unpinned is the name of the task's image if its namespace gives images their digests, allows this one, and it has none yet; "" else.
func Unpinned(ns *tenancy.Namespace, t *drover.Task) string {
	if ns == nil || ns.Images == nil || ns.Images.Pin != tenancy.PinResolve {
		return ""
	}
	ref, _ := t.Config["image"].(string)
	part := reference().FindStringSubmatch(ref)
	if part == nil || part[3] != "" || ref == hostImage {
		return ""
	}
	rule := *ns.Images
	if rule.Pin = ""; refusedImage(&rule, t) != "" {
		return ""
	}
	return ref
}

// located is an image's path with its registry, as docker completes short names.
func located(host, path string) string {
	host = registry(host)
	if host == hub && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return host + "/" + path
}

// registry is a registry's one name.
func registry(host string) string {
	switch host = strings.ToLower(host); host {
	case "", "index.docker.io":
		return hub
	}
	return host
}

// replacedKey is a key of a task's configuration that the node would replace by another, "" if there is none.
func replacedKey(config map[string]any) string {
	first := ""
	for key := range config {
		if strings.Contains(key, "${") && (first == "" || key < first) {
			first = key
		}
	}
	return first
}

// checkImages refuses what cannot be meant. Errors: Invalid, with the field.
func checkImages(ns *tenancy.Namespace) error {
	rule := ns.Images
	if rule == nil {
		return nil
	}
	if rule.Pin != "" && rule.Pin != tenancy.PinRequire && rule.Pin != tenancy.PinResolve {
		return drover.Errorf(drover.Invalid, "namespace %q: Images.Pin: %q is neither empty, nor %q, nor %q", ns.Name, rule.Pin,
			tenancy.PinRequire, tenancy.PinResolve)
	}
	// Servers ask only whom an operator has named: their network may reach more than that of who registers a job.
	if rule.Pin == tenancy.PinResolve && !slices.ContainsFunc(rule.Registries, func(r string) bool { return r != hostImage }) {
		return drover.Errorf(drover.Invalid, "namespace %q: Images.Pin: %q needs Registries: the servers ask these and no others", ns.Name,
			tenancy.PinResolve)
	}
	if len(rule.SignedBy) > maxKeys {
		return drover.Errorf(drover.Invalid, "namespace %q: Images.SignedBy has %d keys, the limit is %d", ns.Name, len(rule.SignedBy), maxKeys)
	}
	if _, err := signature.ParseKeys(rule.SignedBy); err != nil {
		return drover.Errorf(drover.Invalid, "namespace %q: Images.SignedBy: %w", ns.Name, err)
	}
	if len(rule.Registries) > maxEntries {
		return drover.Errorf(drover.Invalid, "namespace %q: Images.Registries has %d entries, the limit is %d", ns.Name, len(rule.Registries),
			maxEntries)
	}
	for _, r := range rule.Registries {
		if r != hostImage && !source().MatchString(r) {
			return drover.Errorf(drover.Invalid, "namespace %q: Images.Registries: %q is neither %q nor a registry, or a path in one, "+
				"such as docker.io/library", ns.Name, r, hostImage)
		}
	}
	return nil
}

// Image takes an image's name apart: its registry, its path there with what short names leave out, and its digest. All are empty for what
// is no reference with a registry, such as the id of an image that the node has.
func Image(ref string) (registry, repository, digest string) {
	part := reference().FindStringSubmatch(ref)
	if part == nil || imageID().MatchString(ref) {
		return "", "", ""
	}
	registry, repository, _ = strings.Cut(located(part[1], part[2]), "/")
	return registry, repository, strings.TrimPrefix(part[3], "@")
}
