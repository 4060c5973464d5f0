import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncClient

/// Errors as an application shows them.
@Suite("Errors of a replica", .hangLimit)
struct ReplicaErrorTests {
  private static let errors: [ReplicaError] =
    ProblemCode.allCases.map { .refused(Problem($0, "detail")) } + [
      .offline("away"), .unexpectedAnswer(status: 502, "a page"), .untrusted("expired"),
      .redirected("to /"), .leftBehind("three"), .tooLarge("answer"), .tokenMissing("gone"),
      .badAddress("x"), .notConfigured, .cannotTrack(table: "t", "no key"),
      .cannotDrop(table: "t", "referred to"), .cannotOpen(path: "f", "no database"),
      .notFound("entry 3"), .database("constraint failed", code: 19), .database("full", code: 13),
      .database("read-only", code: 8), .database("disk", code: 10), .invalidBatch("no column"),
      .invalidName("a device's name"),
      .unfinished("more pages"), .busy("held"), .cancelled, .suspended, .closed,
    ]

  @Test("each error has a description and a remedy", arguments: errors)
  func localized(_ error: ReplicaError) throws {
    let shown: any LocalizedError = error
    #expect(shown.errorDescription == error.description)
    let hint = try #require(shown.recoverySuggestion)
    #expect(hint.hasSuffix("."))
    #expect((error as any Error).localizedDescription == error.description)
  }

  @Test("the remedy fits the cause")
  func remedies() {
    #expect(ReplicaError.database("full", code: 13).recoverySuggestion?.contains("space") == true)
    #expect(
      ReplicaError.refused(Problem(.unauthorized, "x")).recoverySuggestion?.contains("Sign in")
        == true)
    #expect(
      ReplicaError.refused(Problem(.unavailable, "x")).recoverySuggestion?.contains("later")
        == true)
  }
}
