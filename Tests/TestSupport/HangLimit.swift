import Testing

extension Trait where Self == TimeLimitTrait {
  /// Ends a test that hangs. No test's result may depend on it: a machine that is ten times as slow
  /// passes too. It is the only time limit of all suites.
  package static var hangLimit: Self { .timeLimit(.minutes(15)) }
}
