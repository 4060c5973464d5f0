import FerryCommandLine
import FerryNetworking
import FerryPlatform
import FerrySyncServer
import Foundation

/// The flags of `ferryd serve` about access.
enum AccessOptions {
  static let options = [
    OptionSpec(
      "allowed-host", value: "NAME",
      help: """
        A name that requests to an open server may have in Host, in addition to this machine's \
        names. With --insecure numeric addresses are allowed too.
        """,
      environment: "FERRY_ALLOWED_HOST", repeated: true),
    OptionSpec(
      "allow-origin", value: "ORIGIN",
      help: """
        The origin of web pages that may use this server from browsers, exactly: \
        https://app.example or http://127.0.0.1:8000. No pattern, and not null.
        """,
      environment: "FERRY_ALLOW_ORIGIN", repeated: true),
    OptionSpec(
      "jwt-issuer", value: "URL",
      help: "Accept JSON Web Tokens of this issuer: the claim iss, exactly.",
      environment: "FERRY_JWT_ISSUER"),
    OptionSpec(
      "jwt-audience", value: "TEXT", help: "The claim aud that these tokens must have.",
      environment: "FERRY_JWT_AUDIENCE", repeated: true),
    OptionSpec(
      "jwks", value: "FILE|URL",
      help: """
        The issuer's keys: a file, which may hold secrets for HS256, or an https URL (http on \
        loopback).
        """,
      environment: "FERRY_JWKS"),
    OptionSpec(
      "jwt-claim", value: "NAME",
      help: """
        The claim with spaces and roles: {"list-7": "writer"}, the text list-7=writer,note*=reader, \
        or a list of such texts.
        """,
      default: "ferry",
      environment: "FERRY_JWT_CLAIM"),
    OptionSpec(
      "jwt-leeway", value: "TIME", help: "The largest difference from the issuer's clock.",
      kind: .duration, default: "60s", environment: "FERRY_JWT_LEEWAY"),
    OptionSpec(
      "create-spaces", value: "NAMES",
      help: """
        The spaces that every user may create, the owners of tokens and the subjects of JSON Web \
        Tokens: list-* for all names that begin with list-, or * for all. Without it, only admins \
        create spaces. Choose names that no token and no claim grants: their first creator is their \
        admin. --quota-spaces bounds the number of each user.
        """,
      environment: "FERRY_CREATE_SPACES"),
    OptionSpec(
      "rate-limit", value: "N", help: "Requests a second of each principal; 0 for no limit.",
      kind: .integer(0...1_000_000), default: String(RateLimits.standard.requests),
      environment: "FERRY_RATE_LIMIT"),
    OptionSpec(
      "rate-burst", value: "N", help: "Requests of each principal at once after a pause.",
      kind: .integer(1...10_000_000), default: String(RateLimits.standard.requestBurst),
      environment: "FERRY_RATE_BURST"),
    OptionSpec(
      "rate-bytes", value: "SIZE",
      help: "Bytes a second of each principal, both directions together; 0 for no limit.",
      kind: .byteSize, default: "256MiB", environment: "FERRY_RATE_BYTES"),
    OptionSpec(
      "space-rate-limit", value: "N",
      help: """
        Requests a second of each space, above which its principals have equal shares; 0 for no \
        limit.
        """,
      kind: .integer(0...1_000_000), default: String(RateLimits.standard.spaceRequests),
      environment: "FERRY_SPACE_RATE_LIMIT"),
    OptionSpec(
      "space-rate-burst", value: "N", help: "Requests of each space at once after a pause.",
      kind: .integer(1...10_000_000), default: String(RateLimits.standard.spaceRequestBurst),
      environment: "FERRY_SPACE_RATE_BURST"),
    OptionSpec(
      "space-rate-bytes", value: "SIZE",
      help: "Bytes a second of each space, both directions together; 0 for no limit.",
      kind: .byteSize, default: "1GiB", environment: "FERRY_SPACE_RATE_BYTES"),
    OptionSpec(
      "auth-failures", value: "N",
      help: "Unknown tokens a minute from each address; 0 for no limit.",
      kind: .integer(0...1_000_000), default: String(RateLimits.standard.failures),
      environment: "FERRY_AUTH_FAILURES"),
    OptionSpec(
      "audit-retention", value: "TIME", help: "How long entries of the audit log are kept.",
      kind: .duration, default: "400d", environment: "FERRY_AUDIT_RETENTION"),
  ]

  static func apply(
    _ arguments: ParsedArguments, to configuration: inout FerryServerConfiguration
  ) throws {
    configuration.allowedHosts = arguments.strings("allowed-host")
    configuration.allowedOrigins = try arguments.strings("allow-origin").map(origin)
    configuration.rates = RateLimits(
      requests: try arguments.integer("rate-limit"),
      requestBurst: try arguments.integer("rate-burst"),
      bytes: try arguments.byteSize("rate-bytes"),
      failures: try arguments.integer("auth-failures"))
    configuration.rates.spaceRequests = try arguments.integer("space-rate-limit")
    configuration.rates.spaceRequestBurst = try arguments.integer("space-rate-burst")
    configuration.rates.spaceBytes = try arguments.byteSize("space-rate-bytes")
    configuration.auditRetention = max(
      .seconds(1), try arguments.duration("audit-retention"))
    configuration.issuer = try issuer(arguments)
    configuration.userSpaces = try arguments.stringIfPresent("create-spaces").map { text in
      guard let pattern = SpacePattern(text) else {
        throw UsageError(
          .invalidValue, "--create-spaces is neither a name nor the beginning of names and *",
          why: "it is '\(text)'", next: "write list-* or *")
      }
      return pattern
    }
  }

  private static func origin(_ text: String) throws -> WebOrigin {
    do throws(WebOriginError) {
      return try WebOrigin(text)
    } catch {
      throw UsageError(
        .invalidValue, "'\(text)' is not an origin that --allow-origin takes",
        why: error.reason, next: error.nextStep)
    }
  }

  private static func issuer(_ arguments: ParsedArguments) throws -> TokenIssuer? {
    let issuer = arguments.stringIfPresent("jwt-issuer")
    let keys = arguments.stringIfPresent("jwks")
    let audiences = arguments.strings("jwt-audience")
    guard let issuer, let keys, !audiences.isEmpty else {
      guard issuer == nil, keys == nil, audiences.isEmpty else {
        throw UsageError(
          .missingOption, "JSON Web Tokens need an issuer, an audience and keys",
          why: "a token for another service must not be valid here",
          next: "give --jwt-issuer, --jwt-audience and --jwks together")
      }
      return nil
    }
    guard let leeway = Retention(try arguments.duration("jwt-leeway")).milliseconds,
      leeway <= 600_000
    else {
      throw UsageError(
        .invalidValue, "--jwt-leeway is too long", why: "it extends the life of every token",
        next: "write ten minutes at most, and correct the clocks")
    }
    return TokenIssuer(
      rules: ClaimRules(
        issuer: issuer, audiences: audiences, grantsClaim: try arguments.string("jwt-claim"),
        leeway: leeway),
      source: try KeySource(commandLine: keys))
  }
}

extension KeySource {
  /// Reads a file's path, or a URL whose answers cannot be changed on the way.
  fileprivate init(commandLine text: String) throws(UsageError) {
    let lowered = text.lowercasedASCII
    guard lowered.begins(with: "http://") || lowered.begins(with: "https://") else {
      self.init(takesSecrets: true) { () throws(KeySourceError) in try Self.read(file: text) }
      return
    }
    let host = URLComponents(string: text)?.host ?? ""
    guard lowered.begins(with: "https://") || ListenAddress(host: host, port: 0).isLoopback else {
      throw UsageError(
        .invalidValue, "the keys at \(text) cannot be trusted",
        why: "without TLS other machines on the way can replace the keys",
        next: "write an https:// URL, or a file")
    }
    let transport = SystemTransport()
    self.init(takesSecrets: false) { () async throws(KeySourceError) in
      let answer: TransportResponse
      do throws(TransportError) {
        answer = try await transport.send(
          TransportRequest(
            .get, text, headers: ["Accept": "application/jwk-set+json, application/json"],
            timeout: .seconds(10), responseLimit: SignatureKeys.byteCountMax))
      } catch {
        throw KeySourceError("\(text): \(error.description)")
      }
      guard answer.status == 200 else {
        throw KeySourceError("\(text) answered with status \(answer.status)")
      }
      return answer.body
    }
  }

  private static func read(file path: String) throws(KeySourceError) -> [UInt8] {
    guard let file = FileHandle(forReadingAtPath: path) else {
      throw KeySourceError("\(path): \(String(cString: strerror(errno)))")
    }
    defer { try? file.close() }
    do {
      return Array(try file.read(upToCount: SignatureKeys.byteCountMax + 1) ?? Data())
    } catch {
      throw KeySourceError("\(path): \(error.localizedDescription)")
    }
  }
}
