import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("Reading a body", .hangLimit)
struct BodyIntakeTests {
  private typealias Piece = BodyIntake.Piece

  @Test("the intake splits bytes at the ends of chunks")
  func cuts() {
    var intake = BodyIntake(7..<25, size: 25, chunkSize: 10)
    let first = intake.consume(5)
    #expect(
      first == [
        Piece(range: 0..<3, offset: 7, chunk: 0, endsChunk: true),
        Piece(range: 3..<5, offset: 10, chunk: 1, endsChunk: false),
      ])
    let second = intake.consume(13)
    #expect(
      second == [
        Piece(range: 0..<8, offset: 12, chunk: 1, endsChunk: true),
        Piece(range: 8..<13, offset: 20, chunk: 2, endsChunk: true),
      ])
    #expect(intake.isDone)
  }

  @Test("the intake never takes a byte more than was requested")
  func excess() {
    var intake = BodyIntake(0..<10, size: 30, chunkSize: 10)
    let pieces = intake.consume(1_000)
    #expect(pieces == [Piece(range: 0..<10, offset: 0, chunk: 0, endsChunk: true)])
    #expect(intake.isDone)
    let more = intake.consume(1)
    #expect(more == [])
  }

  @Test("the intake does not take the end of a range for the end of a chunk")
  func shortRange() {
    var intake = BodyIntake(0..<15, size: 30, chunkSize: 10)
    let pieces = intake.consume(15)
    #expect(pieces.map(\.endsChunk) == [true, false])
    #expect(intake.isDone)
  }
}
