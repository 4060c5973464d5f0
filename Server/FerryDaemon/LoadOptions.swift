import FerryCommandLine
import FerryHTTPServer
import FerrySyncServer

/// Options of `serve` that keep one client from taking the server from the others.
enum LoadOptions {
  static let options = [
    OptionSpec(
      "connections-per-address", value: "N",
      help: """
        The largest number of connections of one address (of one /64 with IPv6); 0 for no limit. \
        This machine's own addresses have no limit, because clients behind a proxy share them.
        """,
      kind: .integer(0...1_000_000), default: "256",
      environment: "FERRY_CONNECTIONS_PER_ADDRESS"),
    OptionSpec(
      "streams", value: "N",
      help: "The largest number of event streams; by default half of --connections.",
      kind: .integer(1...1_000_000), environment: "FERRY_STREAMS"),
    OptionSpec(
      "body-memory", value: "SIZE",
      help: "Memory for the bodies of all requests together, as received and decompressed.",
      kind: .byteSize, default: "256MiB", environment: "FERRY_BODY_MEMORY"),
    OptionSpec(
      "header-timeout", value: "TIME", help: "How long a request's headers may take.",
      kind: .duration, default: "10s", environment: "FERRY_HEADER_TIMEOUT"),
    OptionSpec(
      "body-timeout", value: "TIME",
      help: "How long any body may take, on its way in or out; more by its size.",
      kind: .duration, default: "60s", environment: "FERRY_BODY_TIMEOUT"),
    OptionSpec(
      "body-rate", value: "SIZE",
      help: "The lowest rate of a body in bytes a second, after --body-timeout.",
      kind: .byteSize, default: "16KiB", environment: "FERRY_BODY_RATE"),
  ]

  static func apply(
    _ arguments: ParsedArguments, to configuration: inout FerryServerConfiguration
  ) throws {
    let perAddress = try arguments.integer("connections-per-address")
    configuration.addressLimit = perAddress > 0 ? perAddress : nil
    configuration.streamLimit = try arguments.integerIfPresent("streams")
    configuration.bodyMemory = try arguments.byteSize("body-memory")
    let second = Duration.seconds(1)
    configuration.pace = TransferPace(
      headers: max(second, try arguments.duration("header-timeout")),
      grace: max(second, try arguments.duration("body-timeout")),
      bytesPerSecond: max(1, try arguments.byteSize("body-rate")))
  }
}
