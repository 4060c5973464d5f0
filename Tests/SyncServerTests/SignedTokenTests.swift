import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySyncServer

/// Tokens and keys of another implementation: PyJWT and Python's cryptography.
struct SignedTokenMint: Decodable {
  /// The set with public keys alone.
  let keys: String
  /// The set with a shared secret, too.
  let secrets: String
  /// The set after a rotation.
  let rotated: String
  let good: [String: String]
  let forged: [String: String]
  let refused: [String: String]
  let grantless: [String: String]
  let rotatedToken: String

  static let issuer = "https://issuer.example"

  /// Makes them again; times are around ``ServiceClockDouble/wall``.
  static func make() async throws -> SignedTokenMint {
    let script = Project.file("Tests/SyncServerTests/Resources/mint_tokens.py").path
    let made = try await ChildProcess.run(
      URL(filePath: "/usr/bin/python3"), [script, issuer, String(ServiceClockDouble.wall / 1_000)])
    try #require(made.status == .exited(0), "\(made.error)")
    return try JSONDecoder().decode(SignedTokenMint.self, from: Data(made.output.utf8))
  }
}

@Suite("JSON Web Tokens", .hangLimit)
struct SignedTokenTests {
  private let time = ServiceClockDouble()
  private let source = KeySourceDouble()
  private let recorder = LogRecorder()

  private func verifier(takesSecrets: Bool = false, leeway: Int64 = 60_000) -> SignedTokenVerifier {
    let source = source
    return verifier(
      KeySource(takesSecrets: takesSecrets) { () throws(KeySourceError) in try source.load() },
      leeway: leeway)
  }

  private func verifier(_ source: KeySource, leeway: Int64 = 60_000) -> SignedTokenVerifier {
    SignedTokenVerifier(
      ClaimRules(issuer: SignedTokenMint.issuer, audiences: ["ferry", "other"], leeway: leeway),
      keys: source, clock: time.clock,
      log: ServiceLog(level: .debug, sink: recorder, clock: time.clock))
  }

  private func text(_ token: String) throws -> SignedText { try #require(SignedText(token)) }

  @Test("tokens of another implementation give their grants until they expire")
  func good() async throws {
    let mint = try await SignedTokenMint.make()
    source.document = mint.secrets
    let verifier = verifier(takesSecrets: true)
    try await verifier.start()
    #expect(mint.good.count >= 8)
    for (name, token) in mint.good {
      let identity = try await verifier.verify(text(token)).get()
      #expect(identity.principal.id == "jwt:\(SignedTokenMint.issuer)#ada", "\(name)")
      #expect(identity.grants.role(in: .known("list-7")) == .writer, "\(name)")
      #expect(identity.grants.role(in: .known("notes")) == nil, "\(name)")
      #expect(identity.expiry == ServiceClockDouble.wall + 660_000, "\(name)")
    }
  }

  @Test("forged tokens are refused")
  func forged() async throws {
    let mint = try await SignedTokenMint.make()
    source.document = mint.keys
    let verifier = verifier()
    try await verifier.start()
    #expect(mint.forged.count >= 12)
    for (name, token) in mint.forged {
      guard let text = SignedText(token) else { continue }
      #expect(await verifier.verify(text).problemCode == .unauthorized, "\(name)")
    }
    // A secret counts from a file only, though the set holds one.
    source.document = mint.secrets
    let remote = self.verifier()
    try await remote.start()
    let token = try #require(mint.good["HS256"])
    #expect(try await remote.verify(text(token)).problemCode == .unauthorized)
    #expect(SignedText(String(repeating: "A", count: 16 << 10) + "..") == nil)
  }

  @Test("tokens with claims that do not fit are refused, those without grants have none")
  func claims() async throws {
    let mint = try await SignedTokenMint.make()
    source.document = mint.keys
    let verifier = verifier()
    try await verifier.start()
    #expect(mint.refused.count >= 15)
    for (name, token) in mint.refused {
      #expect(try await verifier.verify(text(token)).problemCode == .unauthorized, "\(name)")
    }
    for (name, token) in mint.grantless {
      #expect(try await verifier.verify(text(token)).get().grants == .none, "\(name)")
    }
  }

  @Test(
    "keys are fetched for a new key's token, but seldom; a failure keeps the old ones")
  func rotation() async throws {
    let mint = try await SignedTokenMint.make()
    let (old, new) = (try text(#require(mint.good["ES256"])), try text(mint.rotatedToken))
    source.document = mint.keys
    let verifier = verifier()
    try await verifier.start()
    #expect(source.loads == 1)
    source.document = nil
    for _ in 0..<5 {
      #expect(await verifier.verify(new).problemCode == .unauthorized)
    }
    #expect(source.loads == 1, "the set was fetched a moment ago")
    time.advance(KeyRefresh.intervalMin)
    #expect(await verifier.verify(new).problemCode == .unauthorized)
    #expect(source.loads == 2)
    #expect(recorder.lines.contains { $0.contains("the issuer's keys cannot be read") })
    #expect(await verifier.verify(old).problemCode == nil, "the last good set stays")
    _ = verifier.keysChanged()
    source.document = mint.rotated
    time.advance(KeyRefresh.intervalMin)
    #expect(await verifier.verify(new).problemCode == nil)
    #expect(verifier.keysChanged() && !verifier.keysChanged())
    #expect(await verifier.verify(old).problemCode == .unauthorized, "its key was withdrawn")
  }

  @Test("keys that were requested earlier and arrive later do not replace newer ones")
  func overtaken() async throws {
    let mint = try await SignedTokenMint.make()
    let (old, new) = (try text(#require(mint.good["ES256"])), try text(mint.rotatedToken))
    let (requests, feed) = AsyncStream.makeStream(of: CheckedContinuation<[UInt8], Never>.self)
    let verifier = verifier(
      KeySource(takesSecrets: false) { () async throws(KeySourceError) -> [UInt8] in
        await withCheckedContinuation { feed.yield($0) }
      })
    var iterator = requests.makeAsyncIterator()
    async let slow: Void = verifier.reload()
    let first = try #require(await iterator.next())
    async let quick: Void = verifier.reload()
    let second = try #require(await iterator.next())
    second.resume(returning: Array(mint.rotated.utf8))
    try await quick
    first.resume(returning: Array(mint.keys.utf8))
    try await slow
    #expect(await verifier.verify(new).problemCode == nil)
    #expect(await verifier.verify(old).problemCode == .unauthorized, "its key was withdrawn")
  }

  @Test("a server without keys reports it, and accepts the token when it has the keys")
  func noKeys() async throws {
    let mint = try await SignedTokenMint.make()
    let token = try text(#require(mint.good["RS256"]))
    let verifier = verifier()
    await #expect(throws: KeySourceError.self) { try await verifier.start() }
    #expect(await verifier.verify(token).problemCode == .unavailable)
    source.document = mint.keys
    time.advance(KeyRefresh.intervalMin)
    #expect(await verifier.verify(token).problemCode == nil)
  }

  @Test("the gate accepts signed tokens beside its own, caches them, and expires them")
  func gate() async throws {
    let mint = try await SignedTokenMint.make()
    let token = try text(#require(mint.good["EdDSA"]))
    source.document = mint.keys
    let verifier = verifier(leeway: 0)
    try await verifier.start()
    let store = ServiceStoreDouble(spaces: ["list-7"])
    let gate = AccessGate(
      store: store, clock: time.clock, policy: .trusted, verifier: verifier)
    #expect(try await !gate.isOpen(), "a server that trusts an issuer is never open")
    let space = SpaceName.known("list-7")
    let visitor = Visitor(credential: .signed(token))
    let admission = try await gate.admit(visitor, to: space, need: .writer).get()
    #expect(admission.expiry == ServiceClockDouble.wall + 600_000)
    #expect(try await gate.admit(visitor, to: space, need: .admin).problemCode == .forbidden)
    let own = AccessRuleTests.token()
    try await store.addToken(own, AccessGrants(space, .admin))
    let other = Visitor(credential: .token(own))
    #expect(try await gate.admit(other, to: space, need: .admin).problemCode == nil)
    time.advanceWall(milliseconds: 599_999)
    #expect(try await gate.admit(visitor, to: space, need: .writer).problemCode == nil)
    time.advanceWall(milliseconds: 1)
    #expect(try await gate.admit(visitor, to: space, need: .writer).problemCode == .unauthorized)
  }

  @Test("an invalid key set is refused, and weak or unknown keys are skipped")
  func keySets() throws {
    func count(_ text: String) -> Int? {
      (try? SignatureKeys(Array(text.utf8), takesSecrets: true))?.count
    }
    let short = Base64URL.encode([UInt8](repeating: 7, count: 31))
    let long = Base64URL.encode([UInt8](repeating: 7, count: 32))
    for text in ["", "{}", "[]", #"{"keys":{}}"#, #"{"keys":[],"keys":[]}"#, #"{"keys":[1]}"#] {
      #expect(count(text) == nil, "\(text)")
    }
    for (key, number) in [
      (#"{"kty":"oct","k":"\#(long)"}"#, 1), (#"{"kty":"oct","k":"\#(short)"}"#, 0),
      (#"{"kty":"oct","k":"\#(long)","use":"enc"}"#, 0),
      (#"{"kty":"oct","k":"\#(long)","key_ops":["sign"]}"#, 0),
      (#"{"kty":"oct","k":"\#(long)","key_ops":["sign","verify"]}"#, 1),
      (#"{"kty":"oct","k":"\#(long)","alg":"RS256"}"#, 0), (#"{"kty":"quantum"}"#, 0),
      (#"{"kty":"OKP","crv":"X25519","x":"\#(long)"}"#, 0),
      (#"{"kty":"EC","crv":"P-256","x":"\#(long)","y":"\#(long)"}"#, 0),
      (#"{"kty":"EC","crv":"P-256","x":"","y":"\#(long)"}"#, 0),
      (#"{"kty":"EC","crv":"P-256","x":"AQ\#(long)","y":"\#(long)"}"#, 0),
      (#"{"kty":"RSA","n":"\#(long)","e":"AQAB"}"#, 0),
    ] {
      #expect(count(#"{"keys":[\#(key)]}"#) == number, "\(key)")
    }
    let many = Array(repeating: #"{"kty":"oct","k":"\#(long)"}"#, count: 101)
    #expect(count(#"{"keys":[\#(many.joined(separator: ","))]}"#) == nil)
  }
}

/// Gives out a document, or fails while there is none.
final class KeySourceDouble: Sendable {
  private let state = Mutex((document: String?.none, loads: 0))

  var document: String? {
    get { state.withLock { $0.document } }
    set { state.withLock { $0.document = newValue } }
  }

  var loads: Int { state.withLock { $0.loads } }

  func load() throws(KeySourceError) -> [UInt8] {
    let document = state.withLock { state in
      state.loads += 1
      return state.document
    }
    guard let document else { throw KeySourceError("away") }
    return Array(document.utf8)
  }
}
