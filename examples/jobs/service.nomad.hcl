# A service: two processes with a port each, replaced one after the other when the job changes.
variable "greeting" {
  type    = string
  default = "hello"
}

job "web" {
  type = "service"

  update {
    max_parallel     = 1
    min_healthy_time = "5s"
    auto_revert      = true
  }

  group "web" {
    count = 2

    network {
      port "http" {}
    }

    task "server" {
      driver = "sandbox"
      config {
        image   = "host"
        command = "/usr/bin/python3"
        args    = ["-m", "http.server", "${NOMAD_PORT_http}", "--directory", "local"]
      }
      template {
        destination = "local/index.html"
        data        = "${var.greeting} from {{ env \"NOMAD_ALLOC_INDEX\" }}\n"
      }
      resources {
        cpu    = 100 # MHz
        memory = 64  # MB
      }
    }
  }
}
