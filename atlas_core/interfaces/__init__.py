"""The contracts that plugins meet: tools, language models, executors, agent types, observers."""
