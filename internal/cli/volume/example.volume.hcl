# A host volume. Create it: drover volume create volume.host.hcl

name = "database"
type = "host"

# Where it goes: to this node, or to one in the pool that meets the constraints. Without any of them, where there are fewest volumes.
# node_id   = "ea7cc33e-6dd3-4f5c-9b1d-3f6b4c6a0a3e"
# node_pool = "default"

# constraint {
#   attribute = "${attr.kernel.name}"
#   value     = "linux"
# }

# What makes it on the node. mkdir makes a folder, with these parameters.
plugin_id = "mkdir"

parameters {
  mode = "0700"
  # uid = 1000
  # gid = 1000
}

# Plugins that can, make it that large. mkdir cannot.
# capacity_min = "10GiB"
# capacity_max = "20GiB"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

# Of a folder that the node has already: drover volume register volume.host.hcl
# host_path = "/srv/database"
