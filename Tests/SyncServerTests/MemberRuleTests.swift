import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("The rules of members", .hangLimit)
struct MemberRuleTests {
  @Test(
    "a space with members keeps an admin, and nobody becomes a member without consent, unless an admin's credential decides",
    arguments: [
      (2, 1, .admin, nil, false, false), (2, 1, .admin, .reader, false, false),
      (2, 1, .admin, nil, true, true), (2, 2, .admin, nil, false, true),
      (1, 1, .admin, nil, false, true), (1, 1, .admin, .reader, false, false),
      (2, 1, .writer, nil, false, true),
      (2, 1, .reader, .admin, false, true), (0, 0, nil, .reader, true, true),
      (0, 0, nil, .reader, false, false), (10_000, 1, nil, .reader, true, false),
      (10_000, 2, .admin, .reader, false, true),
    ] as [(Int64, Int64, Role?, Role?, Bool, Bool)])
  func roles(
    members: Int64, admins: Int64, former: Role?, role: Role?, isByCredential: Bool, isTaken: Bool
  ) {
    let rule = MemberRule(
      members: members, admins: admins, former: former, isByCredential: isByCredential)
    #expect((rule.fault(of: role) == nil) == isTaken)
  }

  @Test("a user has a bounded number of spaces")
  func spaces() {
    let rule = MemberRule(members: 1, admins: 1, former: nil, isInvited: true, spaces: 1_000)
    #expect(rule.fault(of: .reader)?.code == .storageQuota)
  }

  @Test("memberships are believed for five seconds, and not beyond a change")
  func cache() throws {
    let ada = try #require(UserID(owner: "ada"))
    var cache = MembershipCache(countMax: 2)
    cache.store([.known("a"): .reader], of: ada, now: .zero, in: cache.generation)
    #expect(cache.lookUp(ada, now: .seconds(4)) == [.known("a"): .reader])
    #expect(cache.lookUp(ada, now: .seconds(5)) == nil)
    let before = cache.generation
    cache.forget(ada)
    #expect(cache.lookUp(ada, now: .zero) == nil)
    // A look-up that began before the change.
    cache.store([.known("a"): .reader], of: ada, now: .zero, in: before)
    #expect(cache.lookUp(ada, now: .zero) == nil)
    for name in ["x", "y", "z"] {
      let user = try #require(UserID(owner: name))
      cache.store([:], of: user, now: .zero, in: cache.generation)
      // Again, which counts once.
      cache.store([:], of: user, now: .zero, in: cache.generation)
    }
    #expect(try cache.lookUp(#require(UserID(owner: "x")), now: .zero) == nil)
    #expect(try cache.lookUp(#require(UserID(owner: "z")), now: .zero) == [:])
  }

  @Test("the stronger of a token's and a member's role counts")
  func strongest() throws {
    let principal = try #require(Principal("owner:ada"))
    var identity = Identity(principal, AccessGrants(.known("a"), .writer))
    identity.memberships = [.known("a"): .reader, .known("b"): .admin]
    #expect(identity.role(in: .known("a")) == .writer)
    #expect(identity.role(in: .known("b")) == .admin)
    #expect(identity.role(in: .known("c")) == nil)
    #expect(!identity.grants.administersAny)
    #expect(!AccessGrants(everywhere: .writer).administers(.none))
    #expect(!AccessGrants(.known("a"), .admin).administers(.none))
  }

  @Test(
    "a user has the name of an owner or a subject",
    arguments: [
      ("owner:ada", "ada"), ("owner:a:b", "a:b"), ("jwt:https://id.example#7", "7"),
      ("jwt:issuer", "jwt:issuer"), ("owner:", nil), ("token:0123456789abcdef", nil),
      ("anonymous", nil), ("owner:a\u{202E}b", nil), ("", nil),
    ])
  func names(text: String, name: String?) {
    #expect(UserID(text)?.name == name)
  }

  @Test("a code has 125 random bits, and is stored as its hash only")
  func codes() throws {
    var random = SystemRandomNumberGenerator()
    let code = InvitationCode(random: &random)
    #expect(code.text.utf8.count == 29)
    #expect(InvitationCode(code.text) == code)
    #expect("\(code)".contains(code.text) == false)
    #expect(
      InvitationCode("OIL00-00000-00000-00000-0000o") == InvitationCode("0110000000000000000000000")
    )
    for text in ["", "U0000-00000-00000-00000-00000", "0", String(repeating: "0", count: 26)] {
      #expect(InvitationCode(text) == nil)
    }
  }
}
