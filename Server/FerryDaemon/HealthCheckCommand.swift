import FerryCommandLine
import FerrySyncServer
import Foundation

extension DaemonCommands {
  static let healthCheck = CommandSpec(
    "healthcheck", summary: "Ask a running server whether it can serve: 0 yes, 1 no.",
    discussion: "For the HEALTHCHECK of a container without curl.",
    options: [
      OptionSpec(
        "url", value: "URL",
        help: "The URL to ask; by default /readyz at FERRY_LISTEN, or on port 8080.",
        environment: "FERRY_HEALTHCHECK_URL"),
      OptionSpec(
        "timeout", value: "TIME", help: "How long to wait for the answer.", kind: .duration,
        default: "5s"),
    ]
  ) { arguments in
    let url = try probe(arguments)
    let timeout = try arguments.duration("timeout")
    let status = try await offCooperativePool { try url.status(within: timeout) }
    guard status == 200 else {
      throw CommandFailure(
        "the server is not ready", why: "\(url) answered \(status)",
        next: "see its log", code: "not_ready")
    }
    try TextOutput.standardOutput.line("ok")
    return .done
  }

  private static func probe(_ arguments: ParsedArguments) throws -> HTTPProbe {
    let listen = ProcessInfo.processInfo.environment["FERRY_LISTEN"].flatMap { ListenAddress($0) }
    let text = arguments.stringIfPresent("url") ?? "http://\(nearAddress(of: listen))/readyz"
    guard let probe = HTTPProbe(text) else {
      throw UsageError(
        .invalidValue, "'\(text)' is not a usable URL", why: "--url takes a http:// URL",
        next: "write http://127.0.0.1:8080/readyz")
    }
    return probe
  }

  /// Returns an address at which this machine reaches a server with the address `listen`.
  private static func nearAddress(of listen: ListenAddress?) -> ListenAddress {
    guard var address = listen else { return ListenAddress(host: "127.0.0.1", port: 8080) }
    if address.host == "0.0.0.0" { address.host = "127.0.0.1" }
    if address.host == "::" { address.host = "::1" }
    return address
  }

  /// Runs blocking work on a separate thread.
  private static func offCooperativePool<T: Sendable>(
    _ body: @escaping @Sendable () throws -> T
  ) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
    }
  }
}
