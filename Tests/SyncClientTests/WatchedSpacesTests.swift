import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Spaces of a file while they are watched: ends and pauses in, watches out.
@Suite("The spaces of a watch", .hangLimit)
struct WatchedSpacesTests {
  private static let refused = ReplicaError.refused(Problem(.unauthorized, "no"))

  /// Returns a server with this token.
  private static func access(_ token: String) throws -> ServerAccess {
    let space = try #require(SpaceName("demo"))
    return ServerAccess(
      address: ServerAddress(url: "https://sync.test", space: space), token: token)
  }

  @Test("a joined space is watched once; a stopped one again after a pause or with another token")
  func joined() throws {
    let (a, b) = (try Self.access("a"), try Self.access("b"))
    var spaces = WatchedSpaces(first: 1)
    #expect([2, 3, 2].map { spaces.admit($0) } == [true, true, false])
    #expect(
      spaces.admit(2, b) == false, "it is watched, and reads the new token itself")
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.rest(2, a, Self.refused) == (1, true))
    #expect(spaces.isResting(2))
    #expect(spaces.admit(2) == false)
    #expect(spaces.admit(2, a) == false)
    #expect(spaces.admit(2, b) == true)
    #expect(spaces.resume(2) == nil, "the pause is over too late")
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.rest(2, a, Self.refused) == (2, false))
    #expect(spaces.resume(2) == .look)
    #expect(spaces.admit(2) == true)
    spaces.succeed(2)
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.rest(2, a, Self.refused) == (1, true))
  }

  @Test("the first space is watched again by itself")
  func first() throws {
    let a = try Self.access("a")
    var spaces = WatchedSpaces(first: 1)
    #expect(spaces.resume(1) == nil)
    #expect(spaces.admit(2) == true)
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.rest(1, a, Self.refused) == (1, true))
    #expect(spaces.resume(1) == .watchFirst)
    #expect(spaces.resume(1) == nil)
  }

  @Test("the watch ends with the file or the program, and with the last space by the first reason")
  func ends() {
    for error in [ReplicaError.cancelled, .suspended, .closed, .database("disk", code: 10)] {
      var spaces = WatchedSpaces(first: 1)
      #expect(spaces.admit(2) == true)
      #expect(spaces.end(error) == error)
    }
    var spaces = WatchedSpaces(first: 1)
    #expect(spaces.admit(2) == true)
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.end(.notConfigured) == Self.refused)
  }
}
