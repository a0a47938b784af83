package docker

import (
	"maps"
	"strings"

	"drover/internal/node/driver"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is the image's with the task's over it. The host's paths of the allocation become those inside.
func environment(spec *driver.Spec, c taskConfig, img imageInfo) map[string]string {
	env := map[string]string{"PATH": defaultPath}
	if c.hostname != "" {
		env["HOSTNAME"] = c.hostname
	}
	for _, e := range img.env {
		if k, v, ok := strings.Cut(e, "="); ok {
			env[k] = v
		}
	}
	replace := insidePaths(spec.Dirs)
	for k, v := range spec.Env {
		env[k] = replace.Replace(v)
	}
	maps.Copy(env, map[string]string{"NOMAD_ALLOC_DIR": allocPath, "NOMAD_TASK_DIR": localPath, "NOMAD_SECRETS_DIR": secretsPath})
	return env
}

// insidePaths replaces the host's paths, which carry the allocation's id and so cannot be met by chance.
func insidePaths(d driver.Dirs) *strings.Replacer {
	var pairs []string
	for _, p := range [][2]string{{d.Secrets, secretsPath}, {d.Local, localPath}, {d.Shared, allocPath}} {
		if len(p[0]) > len("/alloc/") {
			pairs = append(pairs, p[0], p[1])
		}
	}
	return strings.NewReplacer(pairs...)
}
