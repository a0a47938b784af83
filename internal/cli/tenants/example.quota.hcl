name        = "example"
description = "What the namespaces with this quota use together"

# One limit a region; a region without one is not limited. Of each value 0 is no limit, and below 0 nothing may be used.
limit {
  region = "global"

  region_limit {
    cpu         = 20000 # MHz, of tasks that reserve no cores
    cores       = 8
    memory      = 32768 # MB
    memory_max  = 65536 # MB
    allocations = 100
    runners     = 50 # that are claimed
    executions  = 20 # that run

    execution_cpu_seconds = 36000 # a day
    execution_mb          = 1024  # of output, a day
    fleet_per_day         = 50    # what machines may cost, in the currency of the pools

    device "nvidia/gpu" {
      count = 2
    }

    storage {
      variables = 10 # MB, encrypted
    }

    # These hold beside those above, for jobs in the node pool.
    node_pool "batch" {
      memory = 8192
    }
  }
}
