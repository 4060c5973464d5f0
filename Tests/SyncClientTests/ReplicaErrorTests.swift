import FerryNetworking
import FerryPersistence
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
      .notFound(.quarantineEntry(3)), .cannotAnswer("two rows", advice: "choose another value"),
      .cannotRetry(entry: 3, "gone"),
      .database("constraint failed", code: 19), .database("full", code: 13),
      .database("read-only", code: 8), .database("disk", code: 10), .invalidBatch("no column"),
      .invalidName("a device's name"),
      .unfinished("more pages"), .busy("held"), .cancelled, .suspended, .closed,
    ]

  /// Words unknown to an app's user.
  private static let jargon = [
    "SQL", "token", "/v1", "HTTP", "PUT", "replica", "schema", "column", "cursor", "packet",
    "certificate", "transaction", "statement",
  ]

  private func expectForUsers(_ text: String?) throws {
    let text = try #require(text)
    #expect(text.hasSuffix("."))
    #expect(
      text.first?.isUppercase == true || text.first?.isNumber == true || text.hasPrefix("home"))
    for word in Self.jargon { #expect(!text.contains(word), "\(text)") }
  }

  @Test("each error has a description and a remedy for users, and a detail for developers")
  func localized() throws {
    let errors = Self.errors + [.cannotJoin(space: "home", "x"), .unsent(space: "home", 2)]
    for error in errors {
      try expectForUsers(error.errorDescription)
      try expectForUsers(error.recoverySuggestion)
      #expect(error.failureReason == error.description)
      #expect((error as any Error).localizedDescription == error.errorDescription)
    }
  }

  @Test("the words of a server's administrator do not reach the app's user")
  func serverDetail() {
    let detail = "there is no space x; an admin creates it with PUT /v1/spaces/x"
    let error = ReplicaError.refused(Problem(.unknownSpace, detail))
    #expect(error.localizedDescription == "The server does not have this data yet.")
    #expect(error.failureReason?.contains(detail) == true)
  }

  @Test("errors of the network and of SQLite have texts for users as well")
  func otherErrors() throws {
    let kinds: [NetworkError.Kind] = [
      .offline, .timedOut, .interrupted, .secureConnectionFailed, .badAddress, .redirectRefused,
      .responseTooLarge, .cancelled, .notCached, .rejected(status: 500, reason: "x"),
      .unacceptable(contentType: nil), .business(code: "7"), .undecodable, .fileFailed, .other,
    ]
    for kind in kinds {
      let error = NetworkError(kind, "HTTP 500 of host:80")
      try expectForUsers(error.errorDescription)
      try expectForUsers(error.recoverySuggestion)
      #expect(error.failureReason == "HTTP 500 of host:80")
    }
    for code: Int32 in [1, 8, 10, 11, 13, 14, 19, 26] {
      let error = DatabaseError("SQL logic error", code: code)
      try expectForUsers(error.errorDescription)
      try expectForUsers(error.recoverySuggestion)
    }
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

  @Test("the table of errors has a row with a code of its own for each kind")
  func rows() {
    // `notFound` has the same meaning, and code, as the server's problem.
    #expect(Set(Self.errors.map(\.explanation.code)).count == Self.errors.count - 1)
    for row in Self.errors.map(\.explanation) {
      let texts = [row.event, row.reason, row.next]
      #expect(!texts.contains(""), "\(row.code)")
      #expect(!row.event.hasSuffix(".") && !row.next.hasSuffix("."), "\(row.code)")
      let isName = row.code.utf8.allSatisfy {
        $0 == 0x5F || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0)
      }
      #expect(isName, "\(row.code)")
    }
  }

  @Test("errors with which a user provides a token, or only waits, are marked in their rows")
  func rowRemedies() {
    #expect(ReplicaError.offline("x").isTransient && !ReplicaError.untrusted("x").isTransient)
    #expect(ReplicaError.unexpectedAnswer(status: 502, "x").explanation.remedy == .later)
    #expect(ReplicaError.unexpectedAnswer(status: 404, "x").explanation.remedy == .correction)
    for code in ProblemCode.allCases {
      let row = ReplicaError.refused(Problem(code, "x")).explanation
      #expect((row.remedy == .later) == (code.action == .retry), "\(code)")
    }
  }
}
