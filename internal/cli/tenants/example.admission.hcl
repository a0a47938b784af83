# Rules for jobs. A rule is against a task of which 'when' holds and, if it has any, one 'max' is exceeded.

rule "no-privileged" {
  description = "Nothing that owns its machine"
  namespaces  = ["team-*"] # globs; none is every namespace
  level       = "enforce"  # or warn, or dry-run
  when        = "Privileged == true or HostNamespaces is not empty or CapAdd is not empty"
  message     = "ask the operators for a namespace of your own"
}

rule "paths" {
  when    = "any HostPaths as path { path not matches `^/srv/shared(/|$)` }"
  message = "of the machine's files tasks may see /srv/shared alone"
}

rule "our-images" {
  level   = "warn"
  when    = "Driver == `docker` and (Registry != `registry.example.com` or Digest is empty)"
  message = "take an image of registry.example.com, with its digest"
}

rule "size" {
  when    = "Driver != `raw_exec`"
  max     = { CPU = 4000, MemoryMB = 8192, MemoryMaxMB = 16384, Count = 20 }
  message = "larger tasks need a namespace with a quota"
}

rule "pipelines" {
  when    = "`ci` in TokenPolicies and Driver == `raw_exec`"
  message = "pipelines deploy containers"
}
