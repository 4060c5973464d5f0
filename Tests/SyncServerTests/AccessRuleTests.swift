import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct AccessRuleTests {
  static let space = SpaceName.known("notes")
  static let other = SpaceName.known("other")

  static func token() -> AccessToken {
    var random = SystemRandomNumberGenerator()
    return AccessToken(random: &random)
  }

  private static func identity(_ grants: AccessGrants) -> Identity {
    Identity(.anonymous, grants)
  }

  private static func grants(_ roles: [String: Role]) throws -> AccessGrants {
    let patterns = try roles.map { (try #require(SpacePattern($0.key)), $0.value) }
    return try #require(AccessGrants(Dictionary(uniqueKeysWithValues: patterns)))
  }

  @Test("a role allows itself and lower roles, in its own space only")
  func matrix() {
    for role in Role.allCases {
      for need in Role.allCases {
        for space in [Self.space, Self.other] {
          let result = AccessRule.decide(
            Self.identity(AccessGrants(space, role)), space: Self.space, need: need)
          if space == Self.space, role >= need {
            #expect(result == .success(Admission(.anonymous, role)))
          } else {
            #expect(result.problemCode == .forbidden, "\(role) needs \(need) in \(space)")
          }
        }
      }
    }
  }

  @Test("grants name spaces, prefixes or all spaces, and the strongest role counts")
  func patterns() throws {
    let grants = try Self.grants(["notes": .admin, "list-*": .writer, "list-7": .reader])
    let expected: [(String, Role?)] = [
      ("notes", .admin), ("list-7", .writer), ("list-", .writer), ("list", nil), ("notes2", nil),
    ]
    for (name, role) in expected { #expect(grants.role(in: .known(name)) == role, "\(name)") }
    #expect(!grants.isServerAdmin)
    let root = try Self.grants(["*": .admin])
    #expect(root.isServerAdmin && root.role(in: .known("x")) == .admin)
    #expect(try !Self.grants(["*": .writer, "a*": .admin]).isServerAdmin)
    #expect(SpacePattern("a*b") == nil && SpacePattern("**") == nil && SpacePattern("") == nil)
  }

  @Test("an admin of some spaces administers grants for these spaces and no others")
  func administers() throws {
    let lists = try Self.grants(["list-*": .admin, "notes": .writer])
    for (other, isCovered) in [
      ("list-7", true), ("list-*", true), ("list-7*", true), ("list*", false), ("*", false),
      ("notes", false),
    ] {
      #expect(try lists.administers(Self.grants([other: .reader])) == isCovered, "\(other)")
    }
    #expect(try !lists.administers(Self.grants(["list-1": .reader, "x": .reader])))
    #expect(try Self.grants(["*": .admin]).administers(Self.grants(["*": .admin, "x": .reader])))
  }

  @Test("grants are parsed strictly")
  func json() throws {
    func read(_ text: String) -> AccessGrants? { AccessGrants(stored: text) }
    let grants = try Self.grants(["notes": .admin, "list-*": .writer])
    #expect(read(String(decoding: grants.encoded(), as: UTF8.self)) == grants)
    #expect(read("{}") == AccessGrants.none)
    for text in [
      "", "[]", "{\"notes\":\"owner\"}", "{\"no tes\":\"reader\"}", "{\"notes\":1}",
      "{\"notes\":\"reader\",\"notes\":\"admin\"}", "{\"notes\":\"reader\"} x",
      "{\"notes\":\"reader\",\"n\\u006ftes\":\"admin\"}",
    ] {
      #expect(read(text) == nil, "\(text)")
    }
  }

  @Test("a request without a usable credential is refused")
  func unauthorized() {
    for credential in [Credential.none, .unreadable] {
      #expect(AccessRule.fault(of: credential)?.code == .unauthorized)
    }
    #expect(AccessRule.recognise(nil, now: 0).problemCode == .unauthorized)
  }

  @Test("the challenge states whether the request had a token")
  func challenge() {
    #expect(AccessRule.challenge(for: .none) == "Bearer realm=\"ferry\"")
    #expect(AccessRule.challenge(for: .unreadable).hasSuffix("error=\"invalid_token\""))
    #expect(AccessRule.challenge(for: .token(Self.token())).hasSuffix("error=\"invalid_token\""))
  }

  @Test("a token has 256 random bits, is read back, and is stored as its hash only")
  func tokenForm() throws {
    let token = Self.token()
    #expect(token.text.hasPrefix("ferry_"))
    #expect(token.text.utf8.count == 49)
    #expect(try #require(AccessToken(token.text)) == token)
    #expect(token != Self.token())
    #expect(token.hash.count == 32)
    #expect(!"\(token)".contains(token.text.dropFirst(6)))
  }

  @Test("a token's identifier is the beginning of its first secret's SHA-256 (FIPS 180-4)")
  func identifiers() {
    #expect(TokenID(hash: SHA256.digest(of: "abc")).text == "ba7816bf8f01cfea")
    #expect(TokenID("ba7816bf8f01cfea") != nil)
    for text in ["", "BA7816bf8f01cfea", "ba7816bf8f01cfe", "ba7816bf8f01cfeax"] {
      #expect(TokenID(text) == nil)
    }
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
    guard case .signed(let signed) = Credential(authorization: "Bearer e30.e30.") else {
      Issue.record("a JSON Web Token is not read")
      return
    }
    #expect(!"\(signed)".contains("e30"))
    let long = "Bearer e30.e30." + String(repeating: "A", count: SignedText.byteCountMax)
    #expect(Credential(authorization: long) == .unreadable)
  }

  @Test("addresses to listen on are parsed strictly")
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
