# A fleet whose machines are processes of this machine: drover agent -dev -config fleet.hcl
# What the keys mean: docs/tutorials/fleet.md and docs/reference/configuration.md
fleet {
  provider "local" {
    type = "loopback"
  }
  pool "std" {
    provider  = "local"
    node_pool = "bought"
    max       = 8
    idle      = "1m"
    budget {
      per_day = 20
    }
    schedule {
      cron     = "0 8 * * 1-5"
      zone     = "Europe/Berlin"
      duration = "10h"
      min      = 2
    }
    type "small" {
      cpu    = 2000 # MHz
      memory = 4096 # MB
      price  = 0.05 # an hour
    }
  }
}
