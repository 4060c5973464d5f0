import Ferry
import Foundation
import Testing

/// An app imports Foundation beside Ferry. If a public type of Ferry had a name of Foundation's,
/// these lines would not compile.
@Suite
struct FoundationNamesTests {
  @Test("Foundation's operations and predicates keep their names beside Ferry")
  func names() throws {
    let even: Predicate<Int> = #Predicate { $0 % 2 == 0 }
    #expect(try even.evaluate(2))
    let operation: Operation = BlockOperation {}
    operation.start()
    #expect(operation.isFinished)
    #expect(throws: PredicateError.self) { throw PredicateError.undefinedVariable }
  }
}
