import App
import Logging

/// Reads the configuration, and says which names in it mean nothing: most often they are misspelt.
///
/// - Parameter overrides: values that count before all others.
func configure(
  for program: MusterConfiguration.Program, overrides: [String: String] = [:]
) async throws -> MusterConfiguration {
  let configuration = try await MusterConfiguration.load(for: program, overrides: overrides)
  if !configuration.unknownVariables.isEmpty {
    makeLogger().warning(
      "variables of the environment are unknown, and ignored: `muster --help` lists all",
      metadata: ["variables": .array(configuration.unknownVariables.map { .string($0) })])
  }
  return configuration
}
