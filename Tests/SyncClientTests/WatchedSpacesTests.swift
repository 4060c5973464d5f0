import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Spaces of a file while they are watched: ends and pauses in, watches out.
@Suite("The spaces of a watch", .hangLimit)
struct WatchedSpacesTests {
  private static let refused = ReplicaError.refused(Problem(.unauthorized, "no"))

  @Test("a joined space is watched once; a stopped one again after a pause or with another token")
  func joined() {
    var spaces = WatchedSpaces(first: 1)
    #expect([2, 3, 2].map { spaces.admit($0, isChanged: false) } == [true, true, false])
    #expect(
      spaces.admit(2, isChanged: true) == false, "it is watched, and reads the new token itself")
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.rest(2, Self.refused) == (1, true))
    #expect(spaces.admit(2, isChanged: false) == false)
    #expect(spaces.admit(2, isChanged: true) == true)
    #expect(spaces.resume(2) == nil, "the pause is over too late")
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.rest(2, Self.refused) == (2, false))
    #expect(spaces.resume(2) == .look)
    #expect(spaces.admit(2, isChanged: false) == true)
    spaces.succeed(2)
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.rest(2, Self.refused) == (1, true))
  }

  @Test("the first space is watched again by itself")
  func first() {
    var spaces = WatchedSpaces(first: 1)
    #expect(spaces.resume(1) == nil)
    #expect(spaces.admit(2, isChanged: false) == true)
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.rest(1, Self.refused) == (1, true))
    #expect(spaces.resume(1) == .watchFirst)
    #expect(spaces.resume(1) == nil)
  }

  @Test("the watch ends with the file or the program, and with the last space by the first reason")
  func ends() {
    for error in [ReplicaError.cancelled, .suspended, .closed, .database("disk", code: 10)] {
      var spaces = WatchedSpaces(first: 1)
      #expect(spaces.admit(2, isChanged: false) == true)
      #expect(spaces.end(error) == error)
    }
    var spaces = WatchedSpaces(first: 1)
    #expect(spaces.admit(2, isChanged: false) == true)
    #expect(spaces.end(Self.refused) == nil)
    #expect(spaces.end(.notConfigured) == Self.refused)
  }
}
