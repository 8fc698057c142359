"""Entry caches of other sizes, policies and conf over one trace, and what follows for the conf of now."""
