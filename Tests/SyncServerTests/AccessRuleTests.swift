import Cryptography
import FerryProtocol
import TestSupport
import Testing

@testable import SyncServer

@Suite(.hangLimit)
struct AccessRuleTests {
  static let space = SpaceName.known("notes")
  static let other = SpaceName.known("other")

  static func token() -> AccessToken {
    var random = SystemRandomNumberGenerator()
    return AccessToken(random: &random)
  }

  static func stored(_ token: AccessToken, _ space: SpaceName, _ role: Role) -> StoredToken {
    StoredToken(hash: token.hash, space: space, role: role, createdAt: 0)
  }

  @Test("a role allows itself and what is below it, in its own space only")
  func matrix() {
    let token = Self.token()
    for role in Role.allCases {
      for need in Role.allCases {
        for space in [Self.space, Self.other] {
          let result = AccessRule.decide(
            .token(token), known: Self.stored(token, space, role), space: Self.space, need: need)
          if space == Self.space, role >= need {
            #expect(result.map(\.role) == .success(role))
          } else {
            #expect(result.problemCode == .forbidden, "\(role) needs \(need) in \(space)")
          }
        }
      }
    }
  }

  @Test("without a known token nobody is let in, whatever he asks")
  func unauthorized() {
    for need in Role.allCases {
      for credential in [Credential.none, .unreadable, .token(Self.token())] {
        let result = AccessRule.decide(credential, known: nil, space: Self.space, need: need)
        #expect(result.problemCode == .unauthorized)
      }
    }
  }

  @Test("the challenge says whether a token was there")
  func challenge() {
    #expect(AccessRule.challenge(for: .none) == "Bearer realm=\"ferry\"")
    #expect(AccessRule.challenge(for: .unreadable).hasSuffix("error=\"invalid_token\""))
    #expect(AccessRule.challenge(for: .token(Self.token())).hasSuffix("error=\"invalid_token\""))
  }

  @Test("a token has 256 random bits, reads back, and is stored as its hash only")
  func tokenForm() throws {
    let token = Self.token()
    #expect(token.text.hasPrefix("ferry_"))
    #expect(token.text.utf8.count == 49)
    #expect(try #require(AccessToken(token.text)) == token)
    #expect(token != Self.token())
    #expect(token.hash.count == 32)
    #expect(!"\(token)".contains(token.text.dropFirst(6)))
  }

  @Test("SHA-256 is the one of FIPS 180-4")
  func digest() {
    let stored = StoredToken(
      hash: SHA256.digest(of: "abc"), space: Self.space, role: .reader, createdAt: 0)
    #expect(
      stored.fullID == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(stored.shortID == "ba7816bf8f01")
  }

  @Test("an Authorization header is read in any case and with any spaces")
  func credentials() {
    let token = Self.token()
    #expect(Credential(authorization: nil) == .none)
    for header in ["Bearer \(token.text)", "bearer   \(token.text)  ", "BEARER \(token.text)"] {
      #expect(Credential(authorization: header) == .token(token))
    }
    let unreadable = [
      "", "Bearer", "Bearer x", "Basic \(token.text)", token.text, "Bearer \(token.text)x",
      "Bearer \(token.text.dropLast())", "Bearer \(token.text) \(token.text)",
      "Bearer ferry_" + String(repeating: "é", count: 43),
    ]
    for header in unreadable { #expect(Credential(authorization: header) == .unreadable) }
  }

  @Test(
    "an open server on loopback turns away what a web page or a foreign name sends",
    arguments: [
      (String?.some("127.0.0.1:8080"), String?.none, true), ("localhost", nil, true),
      ("[::1]:8080", nil, true), ("127.3.2.1", nil, true), ("LocalHost:1", nil, true),
      (nil, nil, true), ("evil.example:8080", nil, false), ("127.0.0.1.evil.example", nil, false),
      ("10.0.0.1:8080", nil, false), ("127.0.0.1:8080", "https://evil.example", false),
      ("127.0.0.1:8080", "null", false), ("[::1", nil, false),
    ])
  func loopback(_ host: String?, _ origin: String?, _ isFine: Bool) {
    #expect((AccessRule.loopbackFault(host: host, origin: origin) == nil) == isFine)
  }

  @Test("addresses to listen on are read strictly")
  func addresses() {
    #expect(ListenAddress("127.0.0.1:8080") == ListenAddress(host: "127.0.0.1", port: 8080))
    #expect(ListenAddress("[::1]:0")?.description == "[::1]:0")
    #expect(ListenAddress("localhost:1")?.host == "127.0.0.1")
    for text in ["", ":1", "8080", "::1:80", "127.0.0.1", "127.0.0.1:65536", "a.b:1", "[1]:1"] {
      #expect(ListenAddress(text) == nil, "\(text)")
    }
    #expect(ListenAddress(host: "127.9.9.9", port: 1).isLoopback)
    #expect(ListenAddress(host: "::1", port: 1).isLoopback)
    #expect(!ListenAddress(host: "0.0.0.0", port: 1).isLoopback)
    #expect(!ListenAddress(host: "::", port: 1).isLoopback)
  }
}

extension Result where Failure == Problem {
  var problemCode: ProblemCode? {
    if case .failure(let problem) = self { problem.code } else { nil }
  }
}
