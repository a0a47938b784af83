# A node pool. Make or change it: drover node pool apply pool.nomad.hcl
node_pool "gpu" {
  description = "Nodes with graphics cards"

  # How long the identities of its nodes live; 24h if it is left out.
  # node_identity_ttl = "24h"

  meta {
    team = "ml"
  }

  # In place of what 'drover operator scheduler get-config' shows.
  # scheduler_config {
  #   scheduler_algorithm             = "spread" # or binpack
  #   memory_oversubscription_enabled = true
  # }
}
