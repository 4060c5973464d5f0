import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("The way into a space by invitation", .hangLimit)
struct SpaceEntryTests {
  @Test("a space of the same name on another server is never replaced")
  func names() throws {
    let family = try #require(SpaceName("family"))
    let here = ServerAddress(url: "https://a.example/", space: family)
    let spaces: [(number: Int, address: ServerAddress?)] = [(1, nil), (2, here)]
    func step(_ space: String, _ server: String) -> SpaceEntry.Step {
      SpaceEntry(space: space, server: server).step(of: spaces)
    }
    #expect(step("family", "https://a.example") == .present(2))
    #expect(step("family", "https://b.example") == .refuse("https://a.example/"))
    #expect(step("other", "https://b.example") == .join)
  }

  @Test(
    "a link has a server without a user, a query or hidden characters, and a code",
    arguments: [
      ("https://a.example/join#AB", "https://a.example"),
      ("http://127.0.0.1:8080/x/join#AB", "http://127.0.0.1:8080/x"),
      ("https://a.example//join#AB", "https://a.example"), ("https://a.example/join#", nil),
      ("https://a.example@b.example/join#AB", nil), ("https://a.example?x=/join#AB", nil),
      ("https://a.exa\u{202E}mple/join#AB", nil), ("ftp://a.example/join#AB", nil), ("AB", nil),
    ])
  func links(text: String, server: String?) {
    let link = InvitationLink(text)
    #expect(link?.server == server)
    if let link { #expect(link.code == "AB") }
  }
}
