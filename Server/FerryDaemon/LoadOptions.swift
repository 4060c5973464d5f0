import FerryCommandLine
import FerryHTTPServer
import FerrySyncServer

/// Options of `serve` against overload by a single client.
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
      "streams-per-address", value: "N",
      help: """
        The largest number of event streams of one address (of one /64 with IPv6); 0 for no limit. \
        This machine's own addresses have no limit. By default half of --connections-per-address.
        """,
      kind: .integer(0...1_000_000), environment: "FERRY_STREAMS_PER_ADDRESS"),
    OptionSpec(
      "trusted-proxy", value: "ADDRESS",
      help: """
        An address of a proxy, or a range such as 10.0.0.0/8, that names each client in \
        --forwarded-header. Limits, the log and failed authentications then count by the client. \
        The proxy must replace this header of its clients, or add to it.
        """,
      environment: "FERRY_TRUSTED_PROXY", repeated: true),
    OptionSpec(
      "forwarded-header", value: "NAME",
      help: "The header in which trusted proxies name their clients; the other one is ignored.",
      kind: .choice(TrustedProxies.Header.allCases.map(\.rawValue)),
      default: TrustedProxies.Header.forwardedFor.rawValue,
      environment: "FERRY_FORWARDED_HEADER"),
    OptionSpec(
      "memory-budget", value: "SIZE",
      help: """
        Memory for all requests together: their bodies, the records that they change, and their \
        answers. By default a quarter of the memory of the container or machine.
        """,
      kind: .byteSize, environment: "FERRY_MEMORY_BUDGET"),
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
    let streams = try arguments.integerIfPresent("streams-per-address")
    configuration.addressStreamLimit =
      streams.map { $0 > 0 ? $0 : nil } ?? (perAddress > 0 ? max(1, perAddress / 2) : nil)
    configuration.proxies = try proxies(arguments)
    configuration.streamLimit = try arguments.integerIfPresent("streams")
    configuration.memoryBudget =
      try arguments.byteSizeIfPresent("memory-budget") ?? ContainerMemory.standardBudget()
    let second = Duration.seconds(1)
    configuration.pace = TransferPace(
      headers: max(second, try arguments.duration("header-timeout")),
      grace: max(second, try arguments.duration("body-timeout")),
      bytesPerSecond: max(1, try arguments.byteSize("body-rate")))
  }

  private static func proxies(_ arguments: ParsedArguments) throws -> TrustedProxies {
    let ranges = try arguments.strings("trusted-proxy").map { text in
      guard let range = AddressRange(text) else {
        throw UsageError(
          .invalidValue, "'\(text)' is not an address that --trusted-proxy takes",
          why: "it takes an IPv4 or IPv6 address, or the first address of a range and its bits",
          next: "write 127.0.0.1, ::1, 10.0.0.0/8 or 2001:db8::/32")
      }
      return range
    }
    let header = TrustedProxies.Header(rawValue: try arguments.string("forwarded-header"))
    return TrustedProxies(ranges, header: header ?? .forwardedFor)
  }
}
